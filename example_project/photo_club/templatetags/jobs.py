"""The template tag that shows how a job is doing."""

from __future__ import annotations

from django import template

from photo_club.jobs import JobStatus, job_status

register = template.Library()


@register.inclusion_tag("photo_club/job.html")
def job(job_id: str) -> dict[str, JobStatus]:
    """Show the status of a job; a small script keeps it up to date."""
    return {"status": job_status(job_id)}
