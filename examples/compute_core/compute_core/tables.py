"""What the service keeps. Times are seconds since 1970, digests are `sha256:` and hex, JSON is in its canonical form."""

VERSION = 1

_ACCOUNTS = """
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    policy TEXT NOT NULL CHECK (policy IN ('approve', 'open')),
    created_at INTEGER NOT NULL
) STRICT
"""
_KEYS = """
CREATE TABLE keys (
    sha256 TEXT PRIMARY KEY, -- of the key, which itself is kept nowhere
    account TEXT NOT NULL REFERENCES accounts (id),
    subject TEXT NOT NULL,
    scopes TEXT NOT NULL, -- with a space between them
    expires_at INTEGER, -- NULL: never
    created_at INTEGER NOT NULL
) STRICT
"""
_SIGNING_KEYS = """
CREATE TABLE signing_keys (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    private BLOB NOT NULL
) STRICT
"""
_QUOTES = """
CREATE TABLE quotes (
    handle TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    terms TEXT NOT NULL,
    digest TEXT NOT NULL, -- of the terms
    signature TEXT NOT NULL, -- of the terms
    cents INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT
"""
_APPROVALS = """
CREATE TABLE approvals (
    quote TEXT PRIMARY KEY REFERENCES quotes (handle),
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT
"""
_BATCHES = """
CREATE TABLE batches (
    handle TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    record TEXT NOT NULL,
    digest TEXT NOT NULL, -- of the record
    created_at INTEGER NOT NULL
) STRICT
"""
# A quote has one job at most, whatever else goes wrong.
_JOBS = """
CREATE TABLE jobs (
    sequence INTEGER PRIMARY KEY, -- the order in which they were started
    handle TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL REFERENCES accounts (id),
    quote TEXT NOT NULL UNIQUE REFERENCES quotes (handle),
    batch TEXT REFERENCES batches (handle),
    record TEXT NOT NULL,
    digest TEXT NOT NULL, -- of the record
    state TEXT NOT NULL CHECK (state IN ('accepted', 'running', 'succeeded', 'failed')),
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    claim TEXT, -- who works on it
    claimed_until INTEGER,
    result BLOB,
    result_digest TEXT
) STRICT
"""
_JOBS_BY_BATCH = "CREATE INDEX jobs_by_batch ON jobs (batch, sequence) WHERE batch IS NOT NULL"
_JOBS_TO_DO = "CREATE INDEX jobs_to_do ON jobs (sequence) WHERE state IN ('accepted', 'running')"
# What was made under an idempotency key. A refusal makes nothing, so it is never in here.
_REQUESTS = """
CREATE TABLE requests (
    account TEXT NOT NULL REFERENCES accounts (id),
    operation TEXT NOT NULL,
    key_digest TEXT NOT NULL,
    body_digest TEXT NOT NULL,
    handle TEXT NOT NULL,
    PRIMARY KEY (account, operation, key_digest)
) STRICT
"""

TABLES = (
    _ACCOUNTS,
    _KEYS,
    _SIGNING_KEYS,
    _QUOTES,
    _APPROVALS,
    _BATCHES,
    _JOBS,
    _JOBS_BY_BATCH,
    _JOBS_TO_DO,
    _REQUESTS,
)
