"""What the tools of the medical world do, in the true state of an episode."""

from __future__ import annotations

from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.tool import ToolFailure
from toolshift.core.world import State
from toolshift.worlds.medical.hospital import (
    DOSES,
    MOST,
    Hospital,
    Panel,
    Patient,
    Provider,
    Series,
)


def _missing(what: str) -> ToolFailure:
    return ToolFailure("not_found", f"There is no {what}.")


def _number(series: Series, name: str, count: int, what: str) -> int:
    number = series.number(name)
    if not 0 <= number < count:
        raise _missing(f"{what} {name}")
    return number


def _patient(db: Hospital, patient_id: str) -> Patient:
    return db.patient(_number(db.patients, patient_id, len(db.people), "patient"))


def _chart(db: Hospital, chart_id: str) -> Patient:
    return db.patient(_number(db.charts, chart_id, len(db.people), "chart"))


def _provider(db: Hospital, provider_id: str) -> Provider:
    return db.provider(_number(db.providers, provider_id, len(db.by_post), "provider"))


def find_patient(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    name, born = arguments["name"], arguments["birth_date"]
    number = state.db.by_name.get((name.lower(), born))
    if number is None:
        raise _missing(f"patient named {name} born {born}")
    patient_id = state.db.patients.id(number)
    return {
        "patient_id": patient_id,
        "wristband_ref": state.code("wristband", patient_id),
        "portal_ref": state.code("portal", patient_id),
    }


def open_chart(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    patient = _patient(state.db, arguments["patient_id"])
    return {
        "chart_id": patient.chart_id,
        "weight_kg": patient.weight,
        "ward_ref": state.code("ward", patient.chart_id),
        "chart_ref": state.code("chart", patient.chart_id),
        "archive_ref": state.code("archive", patient.chart_id),
    }


def list_panels(state: State, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    panels = _chart(state.db, arguments["chart_id"]).panels
    return [{"panel_id": p.panel_id, "test": p.test, "fee_eur": p.fee} for p in panels]


def read_panel(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    panel = _panel(state.db, arguments["panel_id"])
    abnormal = seeds.derive(state.db.seed, "flag", panel.panel_id) % 3 == 0
    return {
        "flag": "abnormal" if abnormal else "normal",
        "specimen_ref": state.code("specimen", panel.panel_id),
        "result_ref": state.code("result", panel.panel_id),
        "analyser_ref": state.code("analyser", panel.panel_id),
    }


def _panel(db: Hospital, panel_id: str) -> Panel:
    number, place = divmod(db.panels.number(panel_id), MOST)
    if 0 <= number < len(db.people):
        panels = db.patient(number).panels
        if place < len(panels):
            return panels[place]
    raise _missing(f"panel {panel_id}")


def list_medications(state: State, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    patient = _chart(state.db, arguments["chart_id"])
    return [
        {
            "medication": drug.name,
            "dose_mg": drug.dose,
            "renewal_ref": state.code("renewal", patient.chart_id, drug.name),
            "batch_ref": state.code("batch", patient.chart_id, drug.name),
        }
        for drug in patient.medications
    ]


def screen_medication(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    patient, chart_id = _patient(state.db, arguments["patient_id"]), arguments["chart_id"]
    if patient.chart_id != chart_id:
        raise _missing(f"chart {chart_id} of {patient.patient_id}")
    drug = _drug(state.db, arguments["medication"])
    return {
        "safe_dose_mg": DOSES[seeds.derive(state.db.seed, "safe", chart_id, drug) % len(DOSES)],
        "clearance_code": state.code("clearance", chart_id, drug),
        "screening_ref": state.code("screening", chart_id, drug),
    }


def _drug(db: Hospital, name: str) -> str:
    for drug in db.drugs:
        if drug.lower() == name.lower():
            return drug
    raise _missing(f"medication named {name}")


def issue_prescription(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    chart_id = _chart(state.db, arguments["chart_id"]).chart_id
    drug, clearance = _drug(state.db, arguments["medication"]), arguments["clearance_code"]
    if clearance != state.code("clearance", chart_id, drug):
        raise _missing(f"clearance {clearance} for {drug} in {chart_id}")
    done = (chart_id, drug, round(float(arguments["dose_mg"]), 3))
    state.record("issue_prescription", *done)
    return {
        "pharmacy_ref": state.code("pharmacy", *done),
        "prescription_ref": state.code("prescription", *done),
        "label_ref": state.code("label", *done),
    }


def find_policy(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    patient = _patient(state.db, arguments["patient_id"])
    return {
        "policy_id": patient.policy_id,
        "copay_eur": patient.copay,
        "policy_ref": state.code("policy", patient.policy_id),
        "broker_ref": state.code("broker", patient.policy_id),
    }


def find_specialist(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    specialty, clinic = arguments["specialty"], arguments["clinic"]
    number = state.db.by_post.get((specialty, clinic.lower()))
    if number is None:
        raise _missing(f"specialist in {specialty} at {clinic}")
    provider = state.db.provider(number)
    return {
        "provider_id": provider.provider_id,
        "wait_min": provider.wait,
        "desk_ref": state.code("desk", provider.provider_id),
        "rota_ref": state.code("rota", provider.provider_id),
    }


def request_authorisation(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    patient, policy_id = _patient(state.db, arguments["patient_id"]), arguments["policy_id"]
    if patient.policy_id != policy_id:
        raise _missing(f"policy {policy_id} of {patient.patient_id}")
    provider_id = _provider(state.db, arguments["provider_id"]).provider_id
    return {
        "auth_number": _authorisation(state, patient.patient_id, provider_id),
        "review_ref": state.code("review", patient.patient_id, provider_id),
        "case_ref": state.code("case", patient.patient_id, provider_id),
    }


def _authorisation(state: State, patient_id: str, provider_id: str) -> str:
    number = seeds.derive(state.db.seed, "authorisation", patient_id, provider_id)
    return f"AUT{number % 90_000_000 + 10_000_000}"


def send_referral(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    done = (
        _patient(state.db, arguments["patient_id"]).patient_id,
        _provider(state.db, arguments["provider_id"]).provider_id,
    )
    if arguments["auth_number"] != _authorisation(state, *done):
        raise _missing(f"authorisation {arguments['auth_number']} for {' and '.join(done)}")
    state.record("send_referral", *done)
    return {
        "referral_code": state.code("referral", *done),
        "letter_ref": state.code("letter", *done),
    }


def file_fees(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    chart_id = _chart(state.db, arguments["chart_id"]).chart_id
    done = (chart_id, round(float(arguments["total_eur"]), 2))
    state.record("file_fees", *done)
    return {
        "ledger_ref": state.code("ledger", *done),
        "claim_ref": state.code("claim", *done),
        "audit_ref": state.code("audit", *done),
    }
