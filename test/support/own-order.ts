import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Takes all of an installation away: others have connections open. */
const LAST = '/test/cluster/faults/api-server-away.test.ts'
/** Files that take long begin first, so that in the end nobody waits for one of them. */
const FIRST = /\/test\/cluster\/(lifecycle|chart|database-server|engines-in-containers)\.test\.ts$/

const place = ({ moduleId }: TestSpecification): number => Number(moduleId.endsWith(LAST)) - Number(FIRST.test(moduleId))

/** Vitest's own order, but for these. */
export class OwnOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => place(one) - place(other))
  }
}
