import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Test file that removes a whole installation, while other files have connections open: it runs alone. */
const LAST = '/test/cluster/faults/api-server-away.test.ts'
/** Long test files, which start first to shorten the whole run. */
const FIRST =
  /\/test\/(cluster\/(lifecycle|chart|database-server|engines-in-containers)|behaviour\/dedicated\/point-in-time|faults\/kill-at-each-step-of-(backups|dedicated)|servers\/backup\/restore)\.test\.ts$/

const place = ({ moduleId }: TestSpecification): number => Number(moduleId.endsWith(LAST)) - Number(FIRST.test(moduleId))

/** Vitest's own order, except for the files above. */
export class OwnOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => place(one) - place(other))
  }
}
