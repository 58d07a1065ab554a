import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes parts of the shared installation away comes last, and last of all what takes all of it away: others have connections open. */
const LATE = [/\/test\/cluster\/faults\//, /\/api-server-away\.test\.ts$/]

const lateness = ({ moduleId }: TestSpecification): number => LATE.filter((late) => late.test(moduleId)).length

/** Vitest's own order, but for the faults of the cluster suite. */
export class FaultsLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => lateness(one) - lateness(other))
  }
}
