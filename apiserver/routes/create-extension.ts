import { z } from 'zod'
import { ExtensionName } from '../../crds/extensions.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { changeSpec } from '../change-spec.ts'
import { ApiError } from '../errors.ts'
import { type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { ExtensionsData, extensionViews, isInstalled, requireAllowedIn } from '../instance-extensions.ts'
import { mustHaveRoom, mustStay } from '../instance-lookup.ts'
import { tooLate } from '../instance-verdict.ts'
import { type AnyRoute, route } from '../route.ts'

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

const CreateExtensionBody = z
  .object({ name: ExtensionName.describe('One of those that `GET …/extensions` lists.') })
  .meta({ id: 'CreateExtension', examples: [{ name: 'citext' }] })

/** `POST /v1/instances/{id}/extensions`: installs an extension of the engine, as the administrator does. */
export function createExtension(deps: InstanceDeps): AnyRoute {
  const { store, audit, find, waits } = deps

  /** Takes the wish for a refused extension back, or the operator would go on trying. */
  async function withdraw(found: SharedInstance, name: string): Promise<void> {
    await changeSpec(store, SharedInstance, {
      found,
      specOf: ({ spec }) => ({ extensions: spec.extensions.filter((each) => each !== name) }),
    })
  }

  return route({
    method: 'post',
    path: '/v1/instances/{id}/extensions',
    on: ['shared'],
    id: 'createExtension',
    summary: 'Install an extension in the database; the answer lists all extensions.',
    description: [
      'A login of an instance cannot install extensions by itself; `CREATE EXTENSION IF NOT EXISTS` of one that is installed passes.',
      'The extension is in schema `public`, and is installed again after a reset. 409 when the schema has an object with a name that it needs.',
    ].join(' '),
    params: InstanceParams,
    body: CreateExtensionBody,
    replies: { 201: ExtensionsData },
    async handle({ principal, params, body, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      mustStay(instance)
      mustHaveRoom(instance)
      const { name } = body
      requireAllowedIn(deps, instance, name)
      const changed = await changeSpec(store, SharedInstance, {
        found: instance,
        specOf: ({ spec }) => ({ extensions: [...new Set([...spec.extensions, name])] }),
      })
      const recorded = changed.isChanged && audit.record({ principal, requestId, sourceIp, action: 'update', ...changed })
      const { generation } = changed.after.metadata
      try {
        const done = await waits.changed(changed.after, (now) => isInstalled(now, name, generation), arrivedAt)
        if (!done) throw tooLate('the extension is not installed yet; try again')
        return { status: 201, data: { extensions: await extensionViews(deps, done) } }
      } catch (error) {
        if (error instanceof ApiError && error.code !== 'unavailable' && changed.isChanged) await withdraw(instance, name)
        throw error
      } finally {
        await recorded
      }
    },
  })
}
