import { AUDIT_DAYS, CLIENT_MINUTE_DAYS, EVENT_DAYS, REQUEST_DAYS } from '../port.ts'

/** Partitioned table: bounds and retention of its partitions. Days are UTC, counted from the epoch. */
export interface PartitionedTable {
  readonly name: string
  /** Partition key: the time in a UUIDv7 id, or a minute since the epoch. */
  readonly by: 'id' | 'minute'
  /** Days in one partition: few partitions where a page may scan all of them, single days for many rows. */
  readonly days: number
  /** Retention in days: a partition is dropped once its last day is so many days ago. */
  readonly keepDays: number
  /** Maximum delay of a record, in days. */
  readonly lateDays: number
}

export const PARTITIONED_TABLES: readonly PartitionedTable[] = [
  { name: 'requests', by: 'id', days: 1, keepDays: REQUEST_DAYS, lateDays: REQUEST_DAYS },
  { name: 'minutes', by: 'minute', days: 1, keepDays: EVENT_DAYS, lateDays: REQUEST_DAYS },
  { name: 'client_minutes', by: 'minute', days: 1, keepDays: CLIENT_MINUTE_DAYS, lateDays: REQUEST_DAYS },
  { name: 'client_hours', by: 'minute', days: 7, keepDays: EVENT_DAYS, lateDays: REQUEST_DAYS },
  { name: 'connections', by: 'id', days: 7, keepDays: EVENT_DAYS, lateDays: EVENT_DAYS },
  // Few days in a partition, so that it can be emptied when the table fills the disk; few partitions, so that a page can scan
  // them.
  { name: 'refusals', by: 'id', days: 3, keepDays: EVENT_DAYS, lateDays: EVENT_DAYS },
  { name: 'audit', by: 'id', days: 28, keepDays: AUDIT_DAYS, lateDays: AUDIT_DAYS },
]

/**
 * Layout 1. Rows are sorted by tunnel, then id. A request has the minute of its id; `minutes` sums requests up by it, with the
 * first and last time of its requests. `client_minutes` and `client_hours` hold the addresses with most requests. `sessions` has
 * a row for each session with a connect or disconnect, in whichever order these arrive; `opened` is its row of `connections`,
 * which may be past its retention.
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

/**
 * Layout 2 adds the generation after the write to an audit entry, with an index for the frequent check whether a generation has
 * an entry.
 */
export const GENERATIONS = `
  ALTER TABLE audit ADD COLUMN generation bigint;
  CREATE INDEX audit_by_resource ON audit (resource, generation, action);
`

/**
 * Layout 3 separates refused logins from connections, so that they can be removed first: any client can cause any number of them.
 * Earlier rows stay in `connections`.
 */
export const REFUSALS = `
  CREATE TABLE refusals (
    tunnel uuid NOT NULL, id uuid NOT NULL, at bigint NOT NULL, type text NOT NULL, edge text NOT NULL, ip text NOT NULL, method text,
    session text NOT NULL, fingerprint text, password text, reason text, ms double precision, PRIMARY KEY (tunnel, id)
  ) PARTITION BY RANGE (id);
`

/** Layout 4 adds the hostname of a tunnel to its audit entries, the name by which its owner knows it. */
export const HOSTNAMES = `
  ALTER TABLE audit ADD COLUMN hostname text;
  CREATE INDEX audit_by_hostname ON audit (hostname) WHERE hostname IS NOT NULL;
`

/**
 * Layout 5 restricts `minutes.ms` to response times of the backend. Earlier sums include responses of the edge, whose share is
 * unknown: each response of a minute counts as equally long.
 */
export const BACKEND_TIMES = 'UPDATE minutes SET ms = ms * (requests - edge) / requests WHERE edge > 0;'
