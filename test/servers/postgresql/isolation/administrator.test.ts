import { expect, test, describe } from 'vitest'
import { neighbours } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test('cannot make the administrator run its code', async () => {
    const client = await at.asMallory()
    await client.query(`
      CREATE TABLE trap (who text);
      CREATE FUNCTION public.current_database() RETURNS name LANGUAGE plpgsql AS $$ BEGIN INSERT INTO trap VALUES (current_user); RETURN 'x'; END $$;
      CREATE FUNCTION public.quote_ident(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO trap VALUES (current_user); RETURN $1; END $$;
      CREATE TABLE granted (n int)`)
    await at.bench.tenant('departing')
    await client.query('GRANT SELECT ON granted TO departing; ALTER ROLE mallory SET search_path = public, pg_catalog')
    await at.bench.admin.drop('departing')
    await client.end()
    await at.bench.admin.disableLogin('mallory')
    await at.bench.admin.claim({ name: 'trapped', password: 'x' }, { connections: 1 }, { template: 'mallory' })
    for (const database of ['mallory', 'trapped']) {
      expect((await (await at.bench.server.client({ database })).query('SELECT who FROM public.trap')).rows).toEqual([])
    }
    await at.bench.admin.enableLogin('mallory')
  })
})
