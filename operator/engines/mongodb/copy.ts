import { BSON, type CollectionInfo, type Document } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import { isTenantName, readTenant } from './catalog.ts'
import type { Connection, Session } from './connection.ts'
import { isLoggedIn } from './sessions.ts'

/** Maximum number of documents in one insert of {@link copyByClient}, and their size in bytes at which it is sent earlier. */
const BATCH = 1_000
const BATCH_BYTES = 8 * 2 ** 20

/** Maximum number of descriptions of views in one answer, so that the next one is asked for before the cursor expires. */
const VIEWS = 100

/** @throws MooringError `template_missing`, `template_in_use` */
export async function assertCopyable(session: Session, template: string): Promise<void> {
  const exists = isTenantName(template) && (await readTenant(session, template)).database
  if (!exists) throw new MooringError(EngineCode.templateMissing, `there is no database ${template} on this server`)
  if (await isLoggedIn(session, template)) throw inUse(template, 'sessions are open on it')
}

/**
 * Collections that are copied: `system.buckets.…` holds the documents of a time-series collection, `system.views` the views; both are created
 * with their owner.
 */
const COLLECTIONS = { type: { $ne: 'view' }, name: { $not: /^system\.(?!js$)/ } }

/**
 * Copies collections with their documents, options and indexes, and views, into an empty database. MongoDB cannot lock a database against
 * writes, so the copy counts only if nothing wrote to the template meanwhile.
 * @throws MooringError `template_in_use` when the template was written to
 */
export async function copyDatabase({ long }: Connection, template: string, name: string): Promise<void> {
  const start = await latestWrite(long)
  // A validator or the pipeline of a view has up to 16 MiB, so the operator never holds the descriptions of all.
  const collections = await long.db(template).listCollections(COLLECTIONS, { nameOnly: true }).toArray()
  for (const { name: collection } of collections) {
    const [info] = await long.db(template).listCollections({ name: collection }, { nameOnly: false }).toArray()
    if (info) await copyCollection(long, { info, from: template, to: name })
  }
  const views = long.db(template).listCollections({ type: 'view' }, { nameOnly: false, batchSize: VIEWS })
  for await (const { name: view, options } of views) await long.command(name, { create: view, ...options })
  if (await hasWrites(long, template, start)) throw inUse(template, 'it was written to meanwhile')
}

interface Source {
  readonly info: CollectionInfo
  readonly from: string
  readonly to: string
}

async function copyCollection(session: Session, { info, from, to }: Source): Promise<void> {
  const { name, type, options } = info
  const creation = without(options ?? {}, ['uuid', 'autoIndexId'])
  if (name !== 'system.js') await session.command(to, { create: name, ...creation })
  await copyIndexes(session, { info, from, to }, creation)
  if (type === 'timeseries' || creation.capped === true || name === 'system.js') return copyByClient(session, { info, from, to })
  // The server copies the documents itself; `$out` keeps indexes and options of the existing collection.
  await session
    .db(from)
    .collection(name)
    .aggregate([{ $out: { db: to, coll: name } }], { bypassDocumentValidation: true })
    .toArray()
}

async function copyIndexes(session: Session, { info: { name }, from, to }: Source, { collation }: Document): Promise<void> {
  const indexes = (await session.db(from).collection(name).listIndexes().toArray()) as Document[]
  const specs = indexes
    .filter((index) => index.name !== '_id_' && index.clustered !== true)
    // An index without collation would get the default collation of its collection.
    .map((index) => ({ ...(collation !== undefined && { collation: { locale: 'simple' } }), ...without(index, ['ns']) }))
  if (specs.length > 0) await session.command(to, { createIndexes: name, indexes: specs })
}

function without(document: Document, keys: readonly string[]): Document {
  return Object.fromEntries(Object.entries(document).filter(([key]) => !keys.includes(key)))
}

/** Copies documents in their order, for collections that `$out` cannot write. Keeps the types of numbers. */
async function copyByClient(session: Session, { info: { name }, from, to }: Source): Promise<void> {
  const source = session.db(from).collection(name)
  const target = session.db(to).collection(name)
  let batch: Document[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    if (batch.length > 0) await target.insertMany(batch, { bypassDocumentValidation: true, ignoreUndefined: false })
    batch = []
    bytes = 0
  }
  for await (const document of source.find({}, { promoteValues: false, promoteBuffers: false, sort: { $natural: 1 } })) {
    batch.push(document)
    bytes += BSON.calculateObjectSize(document)
    if (batch.length === BATCH || bytes >= BATCH_BYTES) await flush()
  }
  await flush()
}

interface OplogEntry {
  readonly ts: unknown
}

const oplogOf = (session: Session) => session.db('local').collection<OplogEntry>('oplog.rs')

/** Returns the time of the latest write on the server. */
async function latestWrite(session: Session): Promise<unknown> {
  const [latest] = await oplogOf(session)
    .find({}, { projection: { ts: 1 } })
    .sort({ $natural: -1 })
    .limit(1)
    .toArray()
  return latest?.ts
}

/** Whether the oplog has a write to the database after a time, including writes within transactions. */
async function hasWrites(session: Session, database: string, after: unknown): Promise<boolean> {
  const ns = { $regex: `^${database}\\.` }
  const found = await oplogOf(session).findOne({
    ts: { $gt: after },
    op: { $ne: 'n' },
    $or: [{ ns }, { 'o.applyOps.ns': ns }],
  })
  return found !== null
}

const inUse = (template: string, why: string): MooringError =>
  new MooringError(EngineCode.templateInUse, `${template} cannot be copied: ${why}`)
