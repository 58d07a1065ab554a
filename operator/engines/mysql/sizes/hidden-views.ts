import { quoteName } from '../catalog.ts'
import { type BoundedSession, Overrun } from '../connection.ts'

/** Number of times that the server stores the text of a view. */
export const VIEW_TEXTS = 3

/** Maximum duration of opening a view, in ms. In that time the server takes 100 to 400 MiB of memory. */
const OPEN_MS = 1_000
/** Bytes that a view counts which takes longer: those of the longest statement that MySQL 8.0 accepts, 64 MiB. */
const UNREAD_BYTES = VIEW_TEXTS * 2 ** 26

/** What is known of the hidden views of one database. */
interface Known {
  /** Bytes by view, as read last. */
  bytes: ReadonlyMap<string, number>
  /** Views that took too long to open; the one whose turn is next comes first. */
  readonly deep: Set<string>
}

export interface HiddenViews {
  /** Returns the bytes of the texts. `which`: as for `EngineAdmin.sizes`. */
  read(database: string, which: 'all' | 'busy'): Promise<number>
  /** Forgets the databases that do not exist any more. */
  retain(existing: ReadonlySet<string>): void
}

/**
 * Creates the reader of texts of views that MySQL 8.0 lists for their definer alone. SHOW CREATE VIEW has the text, but opens the view and all
 * views below it, so a call ends with the first view that takes too long. Such a view is opened again once in a sweep, to see whether
 * it has changed.
 */
export function createHiddenViews(session: BoundedSession): HiddenViews {
  const databases = new Map<string, Known>()

  async function list(database: string): Promise<readonly string[]> {
    const views = await session.query<{ name: string }>(
      `SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND VIEW_DEFINITION = ''`,
      [database],
    )
    return views.map(({ name }) => name)
  }

  /** Returns the bytes of a view; undefined when it takes too long. */
  async function open(database: string, view: string): Promise<number | undefined> {
    try {
      const [shown] = await session.within<Record<string, string>>(
        OPEN_MS,
        `SHOW CREATE VIEW ${quoteName(database)}.${quoteName(view)}`,
      )
      return VIEW_TEXTS * Buffer.byteLength(shown?.['Create View'] ?? '')
    } catch (error) {
      if (error instanceof Overrun) return undefined
      throw error
    }
  }

  return {
    async read(database, which) {
      const views = await list(database)
      const known = databases.get(database) ?? { bytes: new Map<string, number>(), deep: new Set<string>() }
      databases.set(database, known)
      const { deep, bytes: before } = known
      for (const view of deep) if (!views.includes(view)) deep.delete(view)
      const again = which === 'all' ? [...deep].slice(0, 1) : []
      const bytes = new Map(views.map((view) => [view, before.get(view) ?? 0]))
      for (const view of [...views.filter((each) => !deep.has(each)), ...again]) {
        deep.delete(view)
        const read = await open(database, view)
        bytes.set(view, read ?? UNREAD_BYTES)
        if (read !== undefined) continue
        deep.add(view)
        break
      }
      known.bytes = bytes
      return [...bytes.values()].reduce((sum, each) => sum + each, 0)
    },
    retain(existing) {
      for (const database of databases.keys()) if (!existing.has(database)) databases.delete(database)
    },
  }
}
