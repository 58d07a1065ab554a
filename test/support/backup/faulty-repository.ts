import type { Repository } from '../../../backup/repository/port.ts'

export type Operation = 'put' | 'get' | 'list' | 'delete'

/** Called before each operation, once for each key. It may throw, or wait. */
export type Fault = (operation: Operation, key: string) => void | Promise<void>

/** Repository whose operations pass through a fault, which a test may exchange. */
export interface FaultyRepository extends Repository {
  fault: Fault | undefined
  /** Called after each successful operation. */
  after: Fault | undefined
}

export function faulty(repository: Repository): FaultyRepository {
  const { name } = repository
  return {
    name,
    fault: undefined,
    after: undefined,
    async put(key, body, signal) {
      await this.fault?.('put', key)
      const stored = await repository.put(key, body, signal)
      await this.after?.('put', key)
      return stored
    },
    async get(key, signal) {
      await this.fault?.('get', key)
      return repository.get(key, signal)
    },
    async *list(prefix, signal) {
      await this.fault?.('list', prefix)
      yield* repository.list(prefix, signal)
    },
    async delete(keys, signal) {
      for (const key of keys) {
        await this.fault?.('delete', key)
        await repository.delete([key], signal)
        await this.after?.('delete', key)
      }
    },
  }
}
