import { HOUR_MS } from '../shared/database-usage.ts'
import type { WholeSpan } from './port.ts'

// Records of dedicated databases: their usage, for bills, and the measured values of their servers, for charts. The operator writes the
// records, and the API servers read them.

/** Retention of samples in days. Usage is kept as long as audit entries (`AUDIT_DAYS`). */
export const SAMPLE_DAYS = 7

export const USAGE_UNITS = ['hour', 'GiB-hour'] as const
export type UsageUnit = (typeof USAGE_UNITS)[number]

/** Quantities are whole numbers of millionths of a unit, because sums of binary fractions are inexact. */
interface Quantity {
  /** Id of the billable item. */
  readonly item: string
  readonly unit: UsageUnit
  /** Quantity in millionths of the unit. */
  readonly millionths: number
  /** Begin of the use, in milliseconds since the epoch. */
  readonly from: number
  /** End of the use, exclusive. */
  readonly to: number
}

interface UsedBy {
  /** uid of the DedicatedDatabase */
  readonly database: string
  readonly namespace: string
  readonly name: string
}

/**
 * Use of one billable item by one database, within one clock hour (UTC), at a constant rate: a change of plan within an hour yields two
 * records. Database, item and `from` identify a record. A record that is in the journal already stays unchanged.
 */
export type UsageRecord = UsedBy & Quantity

/** Sum of the records of one item of one database. */
export type UsageSum = UsedBy & Quantity

/**
 * Selects the use of one database, or of a namespace. A record that is only partly within the span counts by the share of its time.
 */
export type UsageFilter = WholeSpan & ({ readonly database: string } | { readonly namespace: string })

/** Measured values of one database at one time; null for a value that is not known. */
export interface DatabaseSample {
  /** Time of the sample in milliseconds since the epoch; of merged samples the start of their interval. */
  readonly at: number
  readonly connections: number
  readonly sizeBytes: number
  readonly transactionsPerSecond: number | null
  /** Share of page reads that found the page in the cache, 0 to 1. */
  readonly cacheHitRatio: number | null
  /** Number of slow statements since the sample before; of those that run at the sample, where the engine does not count them. */
  readonly slowStatements: number | null
  readonly backupAgeSeconds: number | null
}

export interface KeptSample extends DatabaseSample {
  /** uid of the DedicatedDatabase */
  readonly database: string
}

/**
 * Records in the journal. All functions throw MooringError while the journal is unavailable. Only the operator may call those that write.
 */
export interface DatabaseRecords {
  /** Writes records. Resolves when all are durable. */
  keepUsage(records: readonly UsageRecord[]): Promise<void>
  /** Returns the sums of the use within a span, by database and item and sorted by both. */
  usage(filter: UsageFilter): Promise<readonly UsageSum[]>
  /**
   * Returns by database the end of the last clock hour with a record, in milliseconds since the epoch. Databases without a record are left
   * out.
   */
  usageUntil(databases: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Writes samples. Ignores a sample whose database and time are in the journal already. */
  keepSamples(samples: readonly KeptSample[]): Promise<void>
  /**
   * Returns the samples of a span, oldest first. With `stepMs` the samples of each interval of that length are merged: averages, the sum of
   * slow statements, and the largest size.
   */
  samples(database: string, span: WholeSpan, stepMs?: number): Promise<readonly DatabaseSample[]>
}

/** Part of a journal with the records of dedicated databases. */
export interface DatabaseJournal {
  readonly databases: DatabaseRecords
}

/** Returns the number of the clock hour that contains a time, counted from the epoch. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS)
