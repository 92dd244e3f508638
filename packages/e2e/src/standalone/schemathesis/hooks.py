"""Facts about the service that a JSON Schema cannot state, so that other findings are left."""

import re
import uuid

import schemathesis

# Inputs by operation whose rules hold between several inputs, for the present moment or for what a
# text encodes. Of the entity tags, Schemathesis makes letters alone.
RULES_BEYOND_SCHEMAS = {
    "listAuditEntries": ["query.action"],
    "createApiKey": ["body.expiresAt"],
    "updateApiKey": ["body.expiresAt", "header.if-match"],
    "updateApplicationSettings": ["header.if-match"],
    "saveLicenseLevels": ["header.if-match"],
    "createRelease": ["body.artifacts"],
    "updateRelease": ["body.artifacts"],
    "createTrustedIssuer": ["body.claims", "body.issuer", "body.jwks"],
    "createUpload": ["header.upload-metadata"],
}

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")


def operation_id(case):
    return case.operation.definition.raw["operationId"]


def normalize(value, name=""):
    """The same lengths without invisible characters, which names lose before they are checked."""
    if isinstance(value, dict):
        return {key: normalize(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [normalize(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    if name in ("name", "levels", "value"):
        return re.sub(r"[^\x21-\x7e]", lambda match: chr(0x4E00 + (ord(match[0]) & 0x3FFF)), value)
    return re.sub(r"[^\x20-\x7e]|^ | $", "!", value) if name == "fileName" else value


@schemathesis.hook
def before_call(ctx, case, kwargs):
    case.body = normalize(case.body)
    case.query = normalize(case.query)
    # Each request is a new one, and no repetition that gets the response of another.
    key = case.headers.get("idempotency-key")
    if isinstance(key, str) and re.fullmatch(r"[\x20-\x7e]{1,200}", key):
        case.headers["idempotency-key"] = f"{key} {uuid.uuid4()}"
    if operation_id(case) == "uploadFile" and not case.body:
        case.headers.pop("content-digest", None)
    # A wait for events would only take the time of the run.
    if re.fullmatch(r"[1-9]|1\d|2[0-5]", str(case.query.get("waitSeconds"))):
        case.query["waitSeconds"] = 1


@schemathesis.check
def schema_has_every_rule(ctx, response, case):
    """A request that fits the schema gets no VALIDATION_ERROR."""
    if not case.meta or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    error = response.json()
    if error.get("code") != "VALIDATION_ERROR":
        return
    known = RULES_BEYOND_SCHEMAS.get(operation_id(case), [])
    unknown = [detail for detail in error["details"] if detail["path"] not in known]
    if unknown:
        raise AssertionError(f"Rejected, though it fits the schema: {unknown}")
