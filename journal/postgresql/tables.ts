import { AUDIT_DAYS, CLIENT_MINUTE_DAYS, EVENT_DAYS, REQUEST_DAYS } from '../retention-days.ts'

/** How a partitioned table is cut, and how long a piece is kept (design, "Journal"): days in UTC, counted from the epoch. */
export interface Cut {
  readonly table: string
  /** What it is cut by: the time in a UUIDv7 id, or a minute since the epoch. */
  readonly by: 'id' | 'minute'
  /** Days in one piece: few pieces where a page may look through all of them, single days where there are many rows. */
  readonly days: number
  /** A piece goes once its last day is this many days ago. */
  readonly keepDays: number
  /** A record may come this many days late. */
  readonly lateDays: number
}

export const CUTS: readonly Cut[] = [
  { table: 'requests', by: 'id', days: 1, keepDays: REQUEST_DAYS, lateDays: REQUEST_DAYS },
  { table: 'minutes', by: 'minute', days: 1, keepDays: EVENT_DAYS, lateDays: REQUEST_DAYS },
  { table: 'client_minutes', by: 'minute', days: 1, keepDays: CLIENT_MINUTE_DAYS, lateDays: REQUEST_DAYS },
  { table: 'client_hours', by: 'minute', days: 7, keepDays: EVENT_DAYS, lateDays: REQUEST_DAYS },
  { table: 'connections', by: 'id', days: 7, keepDays: EVENT_DAYS, lateDays: EVENT_DAYS },
  // Few enough days in a piece for it to be emptied when it fills the disk, few enough pieces for a page to look through them.
  { table: 'refusals', by: 'id', days: 3, keepDays: EVENT_DAYS, lateDays: EVENT_DAYS },
  { table: 'audit', by: 'id', days: 28, keepDays: AUDIT_DAYS, lateDays: AUDIT_DAYS },
]

/**
 * Layout 1. Rows are found by tunnel, then id; a request has the minute of its id, by which `minutes` sums them up and says of each minute which times it
 * holds; `client_minutes` and `client_hours` have the addresses with most of them. `sessions` has a row for each client that came or went,
 * so that whichever is told first is remembered; `opened` is its row of `connections`, which may be past its retention.
 */
export const TABLES = `
  CREATE TABLE requests (
    tunnel uuid NOT NULL, id uuid NOT NULL, minute integer NOT NULL, at bigint NOT NULL, method text NOT NULL, path text NOT NULL, status integer NOT NULL,
    ms double precision NOT NULL, bytes_in bigint NOT NULL, bytes_out bigint NOT NULL, ip text NOT NULL, edge boolean NOT NULL,
    reason text, h2 boolean NOT NULL, PRIMARY KEY (tunnel, id)
  ) PARTITION BY RANGE (id);
  CREATE TABLE minutes (
    tunnel uuid NOT NULL, minute integer NOT NULL, requests bigint NOT NULL, ms double precision NOT NULL,
    s1 bigint NOT NULL, s2 bigint NOT NULL, s3 bigint NOT NULL, s4 bigint NOT NULL, s5 bigint NOT NULL, edge bigint NOT NULL,
    bytes_in bigint NOT NULL, bytes_out bigint NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL,
    PRIMARY KEY (tunnel, minute)
  ) PARTITION BY RANGE (minute);
  CREATE TABLE client_minutes (
    tunnel uuid NOT NULL, minute integer NOT NULL, ips text[] NOT NULL, requests bigint[] NOT NULL, PRIMARY KEY (tunnel, minute)
  ) PARTITION BY RANGE (minute);
  CREATE TABLE client_hours (
    tunnel uuid NOT NULL, minute integer NOT NULL, ips text[] NOT NULL, requests bigint[] NOT NULL, PRIMARY KEY (tunnel, minute)
  ) PARTITION BY RANGE (minute);
  CREATE TABLE connections (
    tunnel uuid NOT NULL, id uuid NOT NULL, at bigint NOT NULL, type text NOT NULL, edge text NOT NULL, ip text NOT NULL, method text,
    session text NOT NULL, fingerprint text, password text, reason text, ms double precision, PRIMARY KEY (tunnel, id)
  ) PARTITION BY RANGE (id);
  CREATE TABLE audit (
    namespace text NOT NULL, id uuid NOT NULL, at bigint NOT NULL, actor_name text, actor_kind text, via text NOT NULL,
    action text NOT NULL, kind text NOT NULL, resource text NOT NULL, name text NOT NULL, changes text NOT NULL, ip text, request text,
    PRIMARY KEY (namespace, id)
  ) PARTITION BY RANGE (id);
  CREATE TABLE sessions (
    session text PRIMARY KEY, tunnel uuid NOT NULL, at bigint NOT NULL, opened json, ended boolean NOT NULL
  );
  CREATE INDEX open_sessions ON sessions (tunnel) WHERE NOT ended;
  CREATE TABLE presence (tunnel uuid PRIMARY KEY, connected_at bigint NOT NULL);
  CREATE UNLOGGED TABLE followed (
    tunnel uuid NOT NULL, follower uuid NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (tunnel, follower)
  );
`

/** Layout 2: an entry says which generation it led to, and whether there is one is asked often. */
export const GENERATIONS = `
  ALTER TABLE audit ADD COLUMN generation bigint;
  CREATE INDEX audit_by_resource ON audit (resource, generation, action);
`

/**
 * Layout 3: refused logins are apart from who came and went, so that they can go before those: anybody may send any number of them. Rows
 * that are in `connections` by then stay there.
 */
export const REFUSALS = `
  CREATE TABLE refusals (
    tunnel uuid NOT NULL, id uuid NOT NULL, at bigint NOT NULL, type text NOT NULL, edge text NOT NULL, ip text NOT NULL, method text,
    session text NOT NULL, fingerprint text, password text, reason text, ms double precision, PRIMARY KEY (tunnel, id)
  ) PARTITION BY RANGE (id);
`

/** Layout 4: an entry of a tunnel has its hostname, by which its owner knows it. */
export const HOSTNAMES = `
  ALTER TABLE audit ADD COLUMN hostname text;
  CREATE INDEX audit_by_hostname ON audit (hostname) WHERE hostname IS NOT NULL;
`

/**
 * Layout 5: `minutes.ms` sums the response times of the backend alone. Earlier sums include the answers of the edge, whose part is not known any more: each
 * answer of a minute is taken to have lasted as long as the others.
 */
export const BACKEND_TIMES = 'UPDATE minutes SET ms = ms * (requests - edge) / requests WHERE edge > 0;'
