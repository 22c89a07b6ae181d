"""The work of a job: a small pure function of its terms, so that the same terms always come to the same."""

from typing import Any, Literal

from .canonical import canonical_json, digest_of


def carry_out(handle: str, terms: dict[str, Any]) -> tuple[Literal["succeeded", "failed"], dict[str, Any]]:
    """How the job with this handle ends, and its result: a chain of digests over source, labels and evidence.

    It fails when the source is named as evidence of itself.
    """
    job = terms["job"]
    evidence: list[str] = job.get("evidence", [])
    result = {"job": handle, "quote": terms["quote"], "workflow": job["workflow"]}
    if job["source_digest"] in evidence:
        return "failed", {**result, "state": "failed", "reason": "source_as_evidence"}
    chain = [digest_of(canonical_json([job["workflow"], job["source_digest"], job.get("labels", {})]))]
    for item in evidence:
        chain.append(digest_of(canonical_json([chain[-1], item])))
    return "succeeded", {**result, "state": "succeeded", "chain": chain, "outcome": chain[-1]}
