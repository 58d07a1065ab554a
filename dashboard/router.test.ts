import { expect, test } from 'vitest'
import { apiPath, pathOf, routeOf } from './router.ts'

const acme = { organization: 'acme', namespace: 'prod' }

test.each([
  ['/dashboard', { page: 'start' }],
  ['/dashboard/', { page: 'start' }],
  ['/dashboard/o/acme/prod', { page: 'tunnels', ...acme }],
  ['/dashboard/o/acme/prod/tunnels', { page: 'tunnels', ...acme }],
  ['/dashboard/o/acme/prod/tunnels/new', { page: 'new-tunnel', ...acme }],
  ['/dashboard/o/acme/prod/tunnels/abc', { page: 'tunnel', id: 'abc', tab: 'overview', ...acme }],
  ['/dashboard/o/acme/prod/tunnels/abc/requests', { page: 'tunnel', id: 'abc', tab: 'requests', ...acme }],
  ['/dashboard/o/acme/prod/databases', { page: 'databases', ...acme }],
  ['/dashboard/o/acme/prod/databases/new', { page: 'new-database', ...acme }],
  ['/dashboard/o/acme/prod/databases/a%20b', { page: 'database', id: 'a b', ...acme }],
  ['/dashboard/o/acme/prod/dedicated', { page: 'dedicated-databases', ...acme }],
  ['/dashboard/o/acme/prod/dedicated/new', { page: 'new-dedicated-database', ...acme }],
  ['/dashboard/o/acme/prod/dedicated/abc', { page: 'dedicated-database', id: 'abc', ...acme }],
  ['/dashboard/o/acme/prod/audit', { page: 'audit', ...acme }],
  ['/dashboard/o/acme/prod/tunnels/abc/constructor', { page: 'unknown' }],
  ['/dashboard/o/acme', { page: 'unknown' }],
  ['/dashboard/o/acme/prod/other', { page: 'unknown' }],
  ['/dashboard/o/%', { page: 'unknown' }],
  ['/dashboards', { page: 'unknown' }],
])('routeOf %s', (path, route) => {
  expect(routeOf(path)).toEqual(route)
})

test('paths escape each segment', () => {
  expect(pathOf(acme, 'databases', '../a?b#c')).toBe('/dashboard/o/acme/prod/databases/..%2Fa%3Fb%23c')
  expect(apiPath(acme, 'tunnels', 'a/b')).toBe('/v1/organizations/acme/namespaces/prod/tunnels/a%2Fb')
})
