"""Care: patients and their charts, lab panels, prescriptions, insurance and referrals.

The graph is two chains that meet. A patient leads to a chart, and the chart to panels and to a
screening whose clearance code a prescription needs; the patient's policy and a specialist, found
apart, lead together to an authorisation, and that to a referral. Entities live in `hospital`.
"""

from __future__ import annotations

from typing import Any

from toolshift.core.fact import read_facts
from toolshift.core.tool import Field, Param
from toolshift.core.world import World, declare, plain, quantity
from toolshift.worlds.medical import actions
from toolshift.worlds.medical.hospital import SPECIALTIES, Hospital, build
from toolshift.worlds.medical.tasks import KINDS


def _text(name: str, description: str, fact: str = "", **more: Any) -> Param:
    schema = {"type": "string", "minLength": 1, "description": description, **more}
    return Param(name, fact or name, schema)


def _amount(name: str, description: str, fact: str, least: float) -> Param:
    return Param(name, fact, {"type": "number", "minimum": least, "description": description})


PATIENT = _text("patient_id", "Identifier of the patient.", pattern="^MRN[0-9]{6}$")
CHART = _text("chart_id", "Identifier of the chart.", pattern="^CHT[0-9]{7}$")
POLICY = _text("policy_id", "Identifier of the policy.", pattern="^HP[0-9]{8}$")
PROVIDER = _text("provider_id", "Identifier of the specialist.", pattern="^DR[0-9]{5}$")
MEDICATION = _text("medication", "Name of the medication.")


_TOOLS = (
    declare(
        actions.find_patient,
        "Find the id of a patient from name and birth date",
        (
            _text("name", "Full name of the patient.", "patient_name"),
            _text(
                "birth_date",
                "Day of birth, as YYYY-MM-DD.",
                pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            ),
        ),
        (plain("patient_id"), plain("wristband_ref"), plain("portal_ref")),
    ),
    declare(
        actions.open_chart,
        "Chart of a patient: its id, body weight and chart reference",
        (PATIENT,),
        (
            plain("chart_id"),
            quantity(("weight_kg",), "weight", unit="kg"),
            plain("ward_ref"),
            plain("chart_ref"),
            plain("archive_ref"),
        ),
    ),
    declare(
        actions.list_panels,
        "Lab panels in a chart, with the test and the fee of each",
        (CHART,),
        (plain("panel_id"), plain("test"), quantity(("fee_eur",), "fee", unit="eur")),
        many=True,
    ),
    declare(
        actions.read_panel,
        "Flag and result reference of one lab panel",
        (_text("panel_id", "Identifier of the lab panel.", pattern="^LAB[0-9]{7}$"),),
        (plain("flag"), plain("specimen_ref"), plain("result_ref"), plain("analyser_ref")),
    ),
    declare(
        actions.list_medications,
        "Medications in a chart, with current dose and renewal reference",
        (CHART,),
        (
            plain("medication"),
            quantity(("dose_mg",), "current_dose", unit="mg"),
            plain("renewal_ref"),
            plain("batch_ref"),
        ),
        many=True,
    ),
    declare(
        actions.screen_medication,
        "Check a new medication for interactions: safe dose and clearance code",
        (PATIENT, CHART, MEDICATION),
        (
            quantity(("safe_dose_mg",), "safe_dose", unit="mg"),
            plain("clearance_code"),
            plain("screening_ref"),
        ),
    ),
    declare(
        actions.issue_prescription,
        "Prescribe a cleared medication at a dose and enter it in a chart",
        (
            CHART,
            MEDICATION,
            _amount("dose_mg", "Dose in milligrams.", "dose", 1),
            _text(
                "clearance_code",
                "Code that clears this medication for this chart.",
                pattern="^[A-Z0-9]{4}-[A-Z0-9]{4}$",
            ),
        ),
        (plain("pharmacy_ref"), plain("prescription_ref"), plain("label_ref")),
        effect="write",
    ),
    declare(
        actions.find_policy,
        "Insurance policy of a patient: its id, copay and policy reference",
        (PATIENT,),
        (
            plain("policy_id"),
            quantity(("copay_eur",), "copay", unit="eur"),
            plain("policy_ref"),
            plain("broker_ref"),
        ),
    ),
    declare(
        actions.find_specialist,
        "Find the specialist of a specialty at a clinic, and the waiting time",
        (
            _text("specialty", "Medical specialty.", enum=list(SPECIALTIES)),
            _text("clinic", "Name of the clinic."),
        ),
        (
            plain("provider_id"),
            Field(("wait_min",), "wait", "integer", unit="min"),
            plain("desk_ref"),
            plain("rota_ref"),
        ),
    ),
    declare(
        actions.request_authorisation,
        "Authorisation number of an insurer for a patient to see a specialist",
        (PATIENT, POLICY, PROVIDER),
        (plain("auth_number"), plain("review_ref"), plain("case_ref")),
    ),
    declare(
        actions.send_referral,
        "Refer a patient to a specialist under an authorisation number",
        (
            PATIENT,
            PROVIDER,
            _text("auth_number", "Number of the authorisation.", pattern="^AUT[0-9]{8}$"),
        ),
        (plain("referral_code"), plain("letter_ref")),
        effect="write",
    ),
    declare(
        actions.file_fees,
        "File the total of the lab fees of a chart as a claim",
        (CHART, _amount("total_eur", "Total in euros.", "fee_total", 0)),
        (plain("ledger_ref"), plain("claim_ref"), plain("audit_ref")),
        effect="write",
    ),
)


class Medical(World):
    """The unseen domain of the research: patients, prescriptions and referrals."""

    name = "medical"
    system = (
        "You assist the staff of a hospital network with patient records. Use the tools; answer "
        "with the exact reference or code that is asked for."
    )
    facts = read_facts(__file__)
    tools = tuple(tool for tool, _ in _TOOLS)
    actions = {tool.name: action for tool, action in _TOOLS}
    kinds = {kind.name: kind for kind in KINDS}

    def build(self, seed: int, size: int, pool: str) -> Hospital:
        return build(seed, size, pool)


WORLD = Medical()
