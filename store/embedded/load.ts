import type { Kind } from '../../crds/kind.ts'
import { InvalidObjectError, validate } from '../../shared/validate.ts'
import { deepFreeze } from '../deep-freeze.ts'
import type { Contents, Row } from './messages.ts'
import { type Change, kindId, type Stored } from './object.ts'
import { Table } from './table.ts'

interface Warner {
  warn(details: object, message: string): void
}

/** Adds defaults to an object, like an API server on reads: defaults of a newer schema also apply to older objects. */
function defaulted(kind: Kind, object: Stored): Stored {
  try {
    const { apiVersion, kind: name, metadata } = object
    return { apiVersion, kind: name, metadata, ...validate(kind, object) }
  } catch (error) {
    // Written under an older schema: it can still be read, repaired or deleted.
    if (error instanceof InvalidObjectError) return object
    throw error
  }
}

/** Builds the table from the contents of the file, and the same objects as changes. Objects of unknown kinds stay on disk but are ignored. */
export function loadTable(
  kinds: readonly Kind[],
  { rows, revision }: Contents,
  logger?: Warner,
): { readonly table: Table; readonly changes: readonly Change[] } {
  const known = new Map(kinds.map((kind) => [kindId(kind), kind]))
  const table = new Table()
  const changes: Change[] = []
  const unknownKinds = new Set<string>()
  const read = (kind: Kind, row: Row): Stored => deepFreeze(defaulted(kind, JSON.parse(row.body) as Stored))
  for (const row of rows) {
    const kind = known.get(row.kind)
    if (!kind) {
      unknownKinds.add(row.kind)
      continue
    }
    const object = read(kind, row)
    table.put(kind, object)
    changes.push({ kind, type: 'added', object, previous: undefined, revision })
  }
  if (unknownKinds.size > 0) logger?.warn({ kinds: [...unknownKinds] }, 'the state has objects of unknown kinds')
  return { table, changes }
}
