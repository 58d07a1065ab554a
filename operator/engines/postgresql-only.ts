import { MooringError } from '../../shared/errors.ts'
import { type EngineAdmin, EngineCode } from './engine.ts'

type PostgresqlOnly = Pick<
  EngineAdmin,
  'adopt' | 'extensions' | 'installExtensions' | 'findChangedExtensions' | 'guardTransactionIds' | 'endExcluded'
>

/** Operations that only PostgreSQL needs, for the other engines. `message`: why an extension cannot be installed. */
export const withoutPostgresqlOnly = (message: string): PostgresqlOnly => ({
  adopt: () => Promise.reject(new MooringError(EngineCode.failed, 'servers of this engine are not restored')),
  extensions: () => Promise.resolve([]),
  installExtensions: (_name, wanted) =>
    Promise.resolve({ installed: [], refused: wanted.map((name) => ({ name, reason: 'unavailable' as const, message })) }),
  findChangedExtensions: () => Promise.resolve([]),
  guardTransactionIds: () => Promise.resolve(0),
  endExcluded: () => Promise.resolve(0),
})
