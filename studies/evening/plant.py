"""The maintenance desk of a machine hall, as it is today."""

from typing import Literal, TypedDict


class Found(TypedDict):
    machine_id: str
    name: str
    hall: str


class Machine(TypedDict):
    machine_id: str
    name: str
    hall: str
    state: Literal["running", "idle", "down"]
    operator_id: str
    spindle_hours: float


class Line(TypedDict):
    machine_id: str
    name: str
    state: Literal["running", "idle", "down"]


class Reading(TypedDict):
    machine_id: str
    sensor: str
    value: float
    unit: str


class Ticket(TypedDict):
    ticket_id: str
    status: str


class Service(TypedDict):
    service_id: str
    date: str


class Part(TypedDict):
    part_no: str
    name: str
    stock: int


class Reservation(TypedDict):
    reservation_id: str
    part_no: str
    quantity: int


class Employee(TypedDict):
    employee_id: str
    name: str
    phone: str


class Downtime(TypedDict):
    entry_id: str
    total: float


MACHINES = {
    "M-11": ("Lathe 3", "A", "running", "E-12", 4120.5),
    "M-12": ("Mill 7", "B", "running", "E-31", 977.0),
    "M-13": ("Press 2", "B", "down", "E-12", 15020.0),
    "M-14": ("Grinder 1", "B", "idle", "E-44", 12.5),
    "M-15": ("Drill 5", "B", "idle", "E-31", 310.0),
}
SENSORS = {"M-11": (61.5, 2.4, 88.0), "M-12": (48.25, 1.1, 90.5), "M-13": (30.0, 7.9, 12.0)}
PARTS = {
    "M-12": [
        ("P-301", "coolant filter", 14),
        ("P-302", "tool holder", 6),
        ("P-307", "drive belt", 9),
    ],
    "M-11": [("P-401", "chuck jaw", 3)],
}
PEOPLE = {
    "E-12": ("Ada Voss", "5512"),
    "E-31": ("Ben Okoro", "5540"),
    "E-44": ("Cem Aydin", "5577"),
}
tickets: dict[str, dict] = {}
services: dict[str, dict] = {}
reservations: dict[str, dict] = {}
downtime: dict[str, float] = {}


def _known(machine_id: str) -> str:
    if machine_id not in MACHINES:
        raise ValueError(f"no machine {machine_id}")
    return machine_id


def find_machine(name: str) -> Found:
    """Find a machine by its name.

    Args:
        name: Name as painted on the machine, such as Lathe 3.
    """
    for key, (label, hall, *_) in MACHINES.items():
        if label.lower() == name.lower():
            return {"machine_id": key, "name": label, "hall": hall}
    raise ValueError(f"no machine is called {name}")


def get_machine(machine_id: str) -> Machine:
    """Show one machine: state, operator and spindle time.

    Args:
        machine_id: Id of the machine.
    """
    name, hall, state, operator, spindle = MACHINES[_known(machine_id)]
    return {
        "machine_id": machine_id,
        "name": name,
        "hall": hall,
        "state": state,
        "operator_id": operator,
        "spindle_hours": spindle,
    }


def list_machines(hall: str, include_idle: bool = True) -> list[Line]:
    """List the machines of a hall.

    Args:
        hall: Letter of the hall.
        include_idle: Whether idle machines are listed too.
    """
    return [
        {"machine_id": key, "name": name, "state": state}
        for key, (name, where, state, *_) in MACHINES.items()
        if where == hall and (include_idle or state != "idle")
    ]


def read_sensor(machine_id: str, sensor: Literal["temp", "vib", "psi"]) -> Reading:
    """Read a sensor of a machine now.

    Args:
        machine_id: Id of the machine.
        sensor: Which sensor.
    """
    at = ["temp", "vib", "psi"].index(sensor)
    return {
        "machine_id": _known(machine_id),
        "sensor": sensor,
        "value": SENSORS[machine_id][at],
        "unit": ("C", "mm/s", "psi")[at],
    }


def open_ticket(machine_id: str, summary: str, urgency: Literal["low", "high"] = "low") -> Ticket:
    """Open a repair ticket for a machine.

    Args:
        machine_id: Id of the machine.
        summary: What is wrong.
        urgency: How urgent it is.
    """
    key = f"T-{900 + len(tickets) + 1}"
    tickets[key] = {"machine_id": _known(machine_id), "summary": summary, "urgency": urgency}
    return {"ticket_id": key, "status": "open"}


def plan_service(machine_id: str, date: str, kind: Literal["inspection", "repair"]) -> Service:
    """Plan a service of a machine on a day.

    Args:
        machine_id: Id of the machine.
        date: Day, as YYYY-MM-DD.
        kind: An inspection or a repair.
    """
    key = f"S-{50 + len(services) + 1}"
    services[key] = {"machine_id": _known(machine_id), "date": date, "kind": kind}
    return {"service_id": key, "date": date}


def list_spare_parts(machine_id: str) -> list[Part]:
    """List the spare parts that fit a machine.

    Args:
        machine_id: Id of the machine.
    """
    return [
        {"part_no": no, "name": name, "stock": stock}
        for no, name, stock in PARTS.get(_known(machine_id), [])
    ]


def reserve_part(part_no: str, quantity: int) -> Reservation:
    """Reserve spare parts in the store.

    Args:
        part_no: Number of the part.
        quantity: How many pieces.
    """
    if not any(part_no == no for parts in PARTS.values() for no, *_ in parts):
        raise ValueError(f"no part {part_no}")
    key = f"R-{70 + len(reservations) + 1}"
    reservations[key] = {"part_no": part_no, "quantity": quantity}
    return {"reservation_id": key, "part_no": part_no, "quantity": quantity}


def get_employee(employee_id: str) -> Employee:
    """Show an employee's name and extension.

    Args:
        employee_id: Id of the employee.
    """
    name, phone = PEOPLE[employee_id]
    return {"employee_id": employee_id, "name": name, "phone": phone}


def log_downtime(machine_id: str, hours: float) -> Downtime:
    """Log how long a machine stood still.

    Args:
        machine_id: Id of the machine.
        hours: Hours of standstill.
    """
    downtime[_known(machine_id)] = downtime.get(machine_id, 0.0) + hours
    return {"entry_id": f"D-{len(downtime)}", "total": downtime[machine_id]}


__all__ = [
    "find_machine",
    "get_employee",
    "get_machine",
    "list_machines",
    "list_spare_parts",
    "log_downtime",
    "open_ticket",
    "plan_service",
    "read_sensor",
    "reserve_part",
]
