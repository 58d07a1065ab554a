import type { Document, MongoClient } from 'mongodb'

const filter = (times: number): object | string =>
  times === 0
    ? '$n'
    : {
        $size: {
          $filter: {
            input: { $range: [0, { $multiply: ['$n', 200_000] }] },
            cond: { $gt: [filter(times - 1), 500_000] },
          },
        },
      }

/** Expression of some 10^15 steps within one document, which checks for no interruption. Its field `n` is 1. */
const STUBBORN = filter(3)

/** Commands on the collection `one` of one document that neither killOp nor the end of their session ends. */
const STUBBORN_COMMANDS: Readonly<Record<'read' | 'update', Document>> = {
  read: { aggregate: 'one', pipeline: [{ $project: { x: STUBBORN } }], cursor: {} },
  // Keeps its locks on the database.
  update: { update: 'one', updates: [{ q: {}, u: [{ $set: { x: STUBBORN } }] }] },
}

/** Operation whose end nobody waits for. */
interface Started {
  /** Resolves to the result or the error: the end of the server, or of the client, ends it. Never rejects. */
  readonly ended: Promise<unknown>
}

/** Starts such a command in the database of a tenant. */
export async function startStubborn(client: MongoClient, name: string, kind: 'read' | 'update'): Promise<Started> {
  const db = client.db(name)
  await db.collection('one').insertOne({ n: 1 })
  return { ended: db.command(STUBBORN_COMMANDS[kind]).catch((error: unknown) => error) }
}
