import { CUSTOM_KINDS } from '../../crds/index.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'
import type { UninstallDeps } from './inventory.ts'
import { countOf, inWords } from './inventory.ts'

const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const CRD = { kind: { kind: 'CustomResourceDefinition', plural: 'customresourcedefinitions', custom: false } }

/** Removes the CustomResourceDefinitions, which helm keeps, unless objects of theirs exist, which would be deleted with them. */
export async function removeDefinitions({ store, log }: UninstallDeps): Promise<void> {
  const there = inWords(await countOf(store, CUSTOM_KINDS))
  if (there !== undefined) {
    log.info({ there }, 'the CustomResourceDefinitions are kept: objects of them exist')
    return
  }
  for (const { plural, group } of CUSTOM_KINDS) {
    const name = `${plural}.${group}`
    const answer = await store.client.request({ method: 'DELETE', path: `${PATH}/${name}`, idempotent: true })
    if (answer.status >= 300 && answer.status !== 404) throw storeErrorOf(answer, { ...CRD, name })
  }
  log.info({}, 'the CustomResourceDefinitions are deleted')
}
