import type { Kind } from '../../crds/kind.ts'
import { InvalidObjectError, validate } from '../../shared/validate.ts'
import { deepFreeze } from '../deep-freeze.ts'
import type { Contents, Row } from './messages.ts'
import { type Change, kindId, type Stored } from './object.ts'
import { Table } from './table.ts'

interface Warner {
  warn(details: object, message: string): void
}

/** As the API server does on reading: a default that came with a newer schema shows on older objects. */
function defaulted(kind: Kind, object: Stored): Stored {
  try {
    const { apiVersion, kind: name, metadata } = object
    return { apiVersion, kind: name, metadata, ...validate(kind, object) }
  } catch (error) {
    // Written under an older schema: still there to be read, repaired or deleted.
    if (error instanceof InvalidObjectError) return object
    throw error
  }
}

/** The table of what is on disk, and the same as changes. A kind that is no longer known stays on disk, unseen. */
export function loadTable(
  kinds: readonly Kind[],
  { rows, revision }: Contents,
  logger?: Warner,
): { readonly table: Table; readonly changes: readonly Change[] } {
  const known = new Map(kinds.map((kind) => [kindId(kind), kind]))
  const table = new Table()
  const changes: Change[] = []
  const strange = new Set<string>()
  const read = (kind: Kind, row: Row): Stored => deepFreeze(defaulted(kind, JSON.parse(row.body) as Stored))
  for (const row of rows) {
    const kind = known.get(row.kind)
    if (!kind) {
      strange.add(row.kind)
      continue
    }
    const object = read(kind, row)
    table.put(kind, object)
    changes.push({ kind, type: 'added', object, previous: undefined, revision })
  }
  if (strange.size > 0) logger?.warn({ kinds: [...strange] }, 'the state holds objects of kinds that are not known')
  return { table, changes }
}
