/** A snapshot of PostgreSQL ("pg_snapshot"): all transactions below `xmax` that are not in `running` have ended. */
export interface Snapshot {
  readonly xmax: bigint
  readonly running: ReadonlySet<bigint>
}

/** Parses the text of a `pg_snapshot`, such as `10:20:10,14,15`; undefined for other text. */
export function parseSnapshot(text: string): Snapshot | undefined {
  const [, xmax, list = ''] = /^\d+:(\d+):([\d,]*)$/.exec(text) ?? []
  if (xmax === undefined) return undefined
  return { xmax: BigInt(xmax), running: new Set(list.split(',').filter(Boolean).map(BigInt)) }
}

/** Transactions that began since a mark, beyond which the database counts as busy without a closer examination. */
const MANY = 10_000n

/**
 * Whether no transaction has ended since the mark but the mark itself. `before` is the snapshot that the mark's transaction took, so that a
 * commit between that and the mark counts as one after it.
 */
export function isQuietSince(before: Snapshot, mark: bigint, now: Snapshot): boolean {
  if (now.xmax - before.xmax > MANY) return false
  for (const running of before.running) if (!now.running.has(running)) return false
  for (let id = before.xmax; id < now.xmax; id += 1n) if (id !== mark && !now.running.has(id)) return false
  return true
}
