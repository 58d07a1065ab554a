import { describe, expect, test } from 'vitest'
import { createVirtualClock } from '../../test/support/virtual-clock.ts'
import type { Question } from '../access.ts'
import type { BindingCaches } from '../memberships.ts'
import type { ApiAnswer, ApiRequest, KubernetesClient } from './client.ts'
import { createSubjectAccess } from './subject-access.ts'

/** An API server's answers in turn, the last for ever. */
function accessWith(answers: ApiAnswer[], limit = 10) {
  const asked: ApiRequest[] = []
  const request = async (wanted: ApiRequest): Promise<ApiAnswer> => {
    asked.push(wanted)
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500, body: undefined }
  }
  const clock = createVirtualClock()
  const client = { request } as unknown as KubernetesClient
  return { access: createSubjectAccess({ client, clock, limit, ...({} as BindingCaches) }), asked, clock }
}

const answer = (allowed: boolean): ApiAnswer => ({ status: 201, body: { status: { allowed } } })
const alice = { user: 'local:alice', groups: ['local:b', 'local:a', 'local:a'] }
const question: Question = { verb: 'create', resource: 'sharedinstances', namespace: 'acme--prod' }

test('a question is put in Kubernetes’ own terms, and nothing is added to the caller', async () => {
  const { access, asked } = accessWith([answer(true)])
  await access.may(alice, question)
  await access.may(alice, { verb: 'patch', resource: 'sharedinstances/status' })
  expect(asked.map(({ body }) => body)).toMatchObject([
    {
      spec: {
        user: 'local:alice',
        groups: ['local:a', 'local:b'],
        resourceAttributes: { verb: 'create', group: 'mooring.dev', resource: 'sharedinstances', namespace: 'acme--prod' },
      },
    },
    { spec: { resourceAttributes: { verb: 'patch', resource: 'sharedinstances', subresource: 'status' } } },
  ])
})

describe('answers', () => {
  test('a yes counts for five seconds from when it was asked', async () => {
    const { access, asked, clock } = accessWith([answer(true), answer(false)])
    await access.may(alice, question)
    await clock.advance(4_999)
    expect(await access.may({ ...alice, groups: ['local:a', 'local:b'] }, question)).toBe(true)
    expect(asked).toHaveLength(1)
    await clock.advance(1)
    expect(await access.may(alice, question)).toBe(false)
  })

  test('a no is asked again each time', async () => {
    const { access } = accessWith([answer(false), answer(true)])
    expect([await access.may(alice, question), await access.may(alice, question)]).toEqual([false, true])
  })

  test('a yes is for this caller and question alone', async () => {
    const { access, asked } = accessWith([answer(true), answer(false)])
    await access.may(alice, question)
    expect(await access.may({ ...alice, user: 'local:bob' }, question)).toBe(false)
    expect(await access.may(alice, { ...question, namespace: 'acme--test' })).toBe(false)
    expect(asked).toHaveLength(3)
  })

  test('the oldest are forgotten first', async () => {
    const { access, asked } = accessWith([answer(true)], 2)
    for (const namespace of ['a', 'b', 'c', 'c', 'b', 'a']) await access.may(alice, { ...question, namespace })
    expect(
      asked.map(({ body }) => (body as { spec: { resourceAttributes: Question } }).spec.resourceAttributes.namespace),
    ).toEqual([...['a', 'b', 'c', 'a']])
  })

  test('none at all is an error, never a yes', async () => {
    const { access } = accessWith([{ status: 500, body: undefined }])
    await expect(access.may(alice, question)).rejects.toMatchObject({ code: 'unavailable' })
  })
})
