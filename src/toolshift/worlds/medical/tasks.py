"""What hospital staff ask for: eleven kinds of task; `wording.toml` phrases them."""

from __future__ import annotations

from random import Random

from toolshift.core.fact import Goal
from toolshift.core.solver import Impossible, Known, Solve, Solver
from toolshift.core.world import TaskKind, query_fact, read_requests
from toolshift.worlds.medical.hospital import DOSES, SPECIALTIES, Hospital, Patient

# -- goals -------------------------------------------------------------------------------------


def _someone(db: Hospital, rng: Random) -> Patient:
    return db.patient(rng.randrange(len(db.people)))


def _identity(patient: Patient) -> Goal:
    return {"patient_name": patient.name, "birth_date": patient.birth_date}


def draw_patient(db: Hospital, rng: Random) -> Goal:
    return _identity(_someone(db, rng))


def draw_test(db: Hospital, rng: Random) -> Goal:
    patient = _someone(db, rng)
    return {**_identity(patient), "test": rng.choice(patient.panels).test}


def draw_weight(db: Hospital, rng: Random) -> Goal | None:
    patient = _someone(db, rng)
    limit = rng.randrange(50, 111)
    if limit == patient.weight:
        return None
    return {**_identity(patient), "weight_limit": limit}


def draw_medication(db: Hospital, rng: Random) -> Goal:
    patient = _someone(db, rng)
    taken = {drug.name for drug in patient.medications}
    new = rng.choice([name for name in db.drugs if name not in taken])
    return {**_identity(patient), "medication": new}


def draw_prescription(db: Hospital, rng: Random) -> Goal:
    return {**draw_medication(db, rng), "dose": rng.choice(DOSES)}


def draw_referral(db: Hospital, rng: Random) -> Goal:
    provider = db.provider(rng.randrange(len(db.by_post)))
    return {
        **draw_patient(db, rng),
        "specialty": provider.specialty,
        "clinic": provider.clinic,
    }


def draw_quickest(db: Hospital, rng: Random) -> Goal | None:
    specialty = rng.choice(SPECIALTIES)
    one, other = rng.sample(db.clinics, 2)
    waits = {db.provider(db.by_post[specialty, name.lower()]).wait for name in (one, other)}
    if len(waits) < 2:
        return None
    return {
        **draw_patient(db, rng),
        "specialty": specialty,
        "clinic": one,
        "other_clinic": other,
    }


# -- solutions ---------------------------------------------------------------------------------


def solve_panel(solver: Solver, env: Known) -> str:
    wanted = solver.given("test")
    for panel in solver.records("panel_id", env):
        if panel["test"] == wanted:
            return str(panel["result_ref"])
    raise Impossible("not_found")


def solve_weight(solver: Solver, env: Known) -> str:
    limit = solver.given("weight_limit")
    return str(env["policy_ref"] if env["weight"] > limit else env["chart_ref"])


def solve_strongest(solver: Solver, env: Known) -> str:
    drugs = solver.records("current_dose", env)
    return str(max(drugs, key=lambda drug: drug["current_dose"])["renewal_ref"])


def solve_fees(solver: Solver, env: Known) -> str:
    total = sum(panel["fee"] for panel in solver.records("fee", env))
    return str(env.about(fee_total=round(total, 2))["claim_ref"])


def solve_safe_dose(solver: Solver, env: Known) -> str:
    return str(env.about(dose=env["safe_dose"])["prescription_ref"])


def solve_quickest(solver: Solver, env: Known) -> str:
    one = env.about(clinic=solver.given("clinic"))
    other = env.about(clinic=solver.given("other_clinic"))
    return str(min(one, other, key=lambda post: post["wait"])["referral_code"])


SOLUTIONS: dict[str, Solve] = {
    "chart": query_fact("chart_ref"),
    "clearance": query_fact("clearance_code"),
    "panel": solve_panel,
    "weight": solve_weight,
    "strongest": solve_strongest,
    "fees": solve_fees,
    "prescribe": query_fact("prescription_ref"),
    "safe_dose": solve_safe_dose,
    "refer": query_fact("referral_code"),
    "quickest": solve_quickest,
}
ASK = read_requests(__file__, SOLUTIONS)
KINDS = (
    TaskKind("chart", (ASK["chart"],), draw_patient),
    TaskKind("clearance", (ASK["clearance"],), draw_medication),
    TaskKind("panel", (ASK["panel"],), draw_test),
    TaskKind("weight", (ASK["weight"],), draw_weight),
    TaskKind("strongest", (ASK["strongest"],), draw_patient),
    TaskKind("fees", (ASK["fees"],), draw_patient),
    TaskKind("prescribe", (ASK["prescribe"],), draw_prescription),
    TaskKind("safe_dose", (ASK["safe_dose"],), draw_medication),
    TaskKind("refer", (ASK["refer"],), draw_referral),
    TaskKind("quickest", (ASK["quickest"],), draw_quickest),
    TaskKind("chart_then_prescribe", (ASK["chart"], ASK["prescribe"]), draw_prescription),
)
