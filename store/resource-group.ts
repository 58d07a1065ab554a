import { KINDS } from '../crds/index.ts'
import { GROUP } from '../crds/names.ts'

const GROUPS: ReadonlyMap<string, string> = new Map(KINDS.map(({ plural, group }) => [plural, group]))

/** API group of a resource named as in a question: `secrets`, `sharedinstances/status`. */
export function groupOf(resource: string): string {
  const [plural = ''] = resource.split('/')
  // What no store serves yet can only be a kind of ours that is still to come.
  return GROUPS.get(plural) ?? GROUP
}
