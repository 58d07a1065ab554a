import { expect, test } from 'vitest'
import type { Question } from '../../store/access.ts'
import { forbiddenMessage } from './forbidden.ts'

const viewer = { organization: 'acme', namespace: 'prod', role: 'viewer' } as const
const admin = { organization: 'acme', namespace: 'test', role: 'admin' } as const
const namespace = 'acme--prod'

test.each<{ question: Question; own: readonly (typeof viewer | typeof admin)[]; is: string }>([
  {
    question: { verb: 'create', resource: 'sharedinstances', namespace },
    own: [viewer, admin],
    is: 'creating databases needs the role editor; you are viewer: ask an admin of acme/prod',
  },
  {
    question: { verb: 'get', resource: 'secrets', namespace },
    own: [viewer],
    is: 'reading credentials needs the role editor; you are viewer: ask an admin of acme/prod',
  },
  {
    question: { verb: 'create', resource: 'rolebindings', namespace },
    own: [{ ...admin, namespace: 'test' }],
    is: 'giving roles to members needs the role admin; you have no role: ask an admin of acme/prod',
  },
  {
    question: { verb: 'create', resource: 'organizations' },
    own: [viewer, admin],
    is: 'creating organizations needs the role platform admin; you are admin: ask a platform admin',
  },
  {
    question: { verb: 'delete', resource: 'tenantnamespaces' },
    own: [],
    is: 'deleting namespaces needs the role platform admin; you have no role: ask a platform admin',
  },
  {
    question: { verb: 'create', resource: 'secrets', namespace },
    own: [viewer],
    is: 'creating credentials is not part of any role',
  },
])('$is', ({ question, own, is }) => {
  expect(forbiddenMessage(question, own)).toBe(is)
})
