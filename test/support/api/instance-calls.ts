import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { InstanceView } from '../../../apiserver/instances/instance-view.ts'
import { REGION_ID } from '../../builders/shared-instance.ts'
import type { Answer, InstanceApi } from './instance-api.ts'

/** Body that the API of the tests accepts. */
export const instanceBody = { identifier: 'pr-42', region: REGION_ID, motor: 'postgresql-15.4.0' } as const

export const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } })

export const instanceOf = ({ body }: Answer) => (body.data as { instance: InstanceView }).instance

/** Returns all instances in the store. */
export const stored = async ({ store }: InstanceApi) => (await store.list(SharedInstance)).items

/** Creates an instance by POST and expects success. @throws Error with the message of the error response */
export async function expectCreated(api: InstanceApi, body: object = {}): Promise<InstanceView> {
  const answer = await api.call('POST /v1/instances', { body: { ...instanceBody, ...body } })
  if (answer.status !== 201) throw new Error(answer.body.msg)
  return instanceOf(answer)
}
