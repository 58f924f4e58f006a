"""Upkeep: prune, migrate, repair, doctor, stats."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from mas.http.dependencies import OnlySession, Product
from mas.http.wire import MigrateBody, PruneBody, RepairBody, answer, answers
from mas.model.stats import Stats
from mas.model.upkeep import Diagnosis, Migration, PrunePlan, Repair
from mas.service.upkeep.prune import PrunePolicy

router = APIRouter(tags=["upkeep"])


@router.post("/prune", summary="Prune", **answers(PrunePlan, 200, 404, 409, 507))
def prune(mas: Product, body: PruneBody) -> Response:
    """Move old sessions to the trash and remove old trash for good. A dry run unless `dryRun` is false."""
    return answer(mas.prune(PrunePolicy(body.older_than, body.keep, tuple(body.statuses), body.policy), body.dry_run))


@router.post("/migrate", summary="Migrate", **answers(Migration, 200, 404, 409, 507))
def migrate(mas: Product, body: Annotated[MigrateBody | None, Body()] = None) -> Response:
    """Copy old workspaces and sessions into isolated ones. A dry run unless `dryRun` is false."""
    wanted = body or MigrateBody()
    return answer(mas.migrate(wanted.source, wanted.dry_run))


@router.post("/repair", summary="Repair", **answers(Repair, 200, 409, 507))
def repair(mas: Product, body: Annotated[RepairBody | None, Body()] = None) -> Response:
    """Find damage, and repair it if `dryRun` is false."""
    return answer(mas.repair((body or RepairBody()).dry_run))


@router.get("/doctor", summary="Check everything", **answers(Diagnosis))
def doctor(mas: Product) -> Response:
    """Check that everything MAS needs is available."""
    return answer(mas.doctor())


@router.get("/stats", summary="Resources of all sessions", **answers(Stats, 200, 404, 410))
def stats(mas: Product, session_id: OnlySession) -> Response:
    """Sessions, running agents, and their CPU, memory and disk. `cpu` is the average cores since the last request."""
    return answer(mas.stats(session_id))
