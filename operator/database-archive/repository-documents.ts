import type { z } from 'zod'
import { AgentState, Order, ORDER_KEY, STATE_KEY } from '../../backup/agent-state.ts'
import { type Repository, RepositoryCode } from '../../backup/repository/port.ts'
import { bodyOf, readSmall } from '../../backup/repository/small-objects.ts'
import { MooringError } from '../../shared/errors.ts'
import { jsonOf } from '../../shared/json.ts'
import type { Documents } from './plan.ts'

/** Maximum size of a document in bytes: a state has at most 100 backups. */
const MAX_BYTES = 1_048_576

/** Reads the documents of the database with this uid. @throws MooringError with a code of {@link RepositoryCode} other than `notFound` */
export async function readDocuments(repository: Repository, uid: string, signal: AbortSignal): Promise<Documents> {
  const [state, order] = await Promise.all([
    read(repository, { key: `${uid}/${STATE_KEY}`, schema: AgentState }, signal),
    read(repository, { key: `${uid}/${ORDER_KEY}`, schema: Order }, signal),
  ])
  return { state, order }
}

/** Writes the order of the database with this uid. @throws MooringError with a code of {@link RepositoryCode} */
export async function writeOrder(repository: Repository, uid: string, order: Order): Promise<void> {
  await repository.put(`${uid}/${ORDER_KEY}`, bodyOf(Buffer.from(`${JSON.stringify(order)}\n`)))
}

/**
 * Removes all objects of the database with this uid, and checks that none is left.
 * @returns the number of removed objects
 * @throws MooringError with a code of {@link RepositoryCode}
 */
export async function removeObjects(repository: Repository, uid: string, signal: AbortSignal): Promise<number> {
  const prefix = `${uid}/`
  const first = await keysOf(repository, prefix, signal)
  if (first.length === 0) return 0
  for (let at = 0; at < first.length; at += BATCH) await repository.delete(first.slice(at, at + BATCH), signal)
  const left = await keysOf(repository, prefix, signal)
  if (left.length > 0)
    throw new MooringError(RepositoryCode.unavailable, `${repository.name} still has ${left.length} objects of the backups`)
  return first.length
}

/** Number of objects that are removed in one call. */
const BATCH = 1_000

async function keysOf(repository: Repository, prefix: string, signal: AbortSignal): Promise<readonly string[]> {
  const keys: string[] = []
  for await (const { key } of repository.list(prefix, signal)) keys.push(key)
  return keys
}

interface Document<T> {
  readonly key: string
  readonly schema: z.ZodType<T>
}

/** Reads a document; undefined when it is missing, or invalid: its writer replaces it. */
async function read<T>(repository: Repository, { key, schema }: Document<T>, signal: AbortSignal): Promise<T | undefined> {
  const text = await readSmall(repository, { key, maxBytes: MAX_BYTES }, signal)
  return text === undefined ? undefined : schema.safeParse(jsonOf(text)).data
}
