import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../shared/errors.ts'
import type { Instance } from '../api/answers.ts'
import { CACHE, unpackedPackages } from '../debian-packages.ts'
import { exists, runProgram } from './programs.ts'

/** Drivers of MySQL's protocol for Java and PHP. They come from Maven and Debian into the user's cache the first time; Java is Maven's own. */

/** Driver of a language. */
export interface LanguageDriver {
  readonly driver: string
  /** Logs in with the parts of the response and, where TLS is required, its CA. @returns the login that the server names */
  readonly user: (instance: Instance, directory: string) => Promise<string>
}

const CONNECTOR_J = { artifact: 'com.mysql:mysql-connector-j:8.4.0', jar: 'mysql-connector-j-8.4.0.jar' }
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'

/** Command of PHP and its modules, and their libraries, of Debian 12. */
const PHP = [
  ...['php8.2-cli', 'php8.2-mysql', 'php8.2-common', 'libc6', 'libargon2-1', 'libedit2', 'libmagic1', 'libpcre2-8-0'],
  ...['libsodium23', 'libssl3', 'libsystemd0', 'libxml2', 'zlib1g', 'libcap2', 'libgcrypt20', 'libgpg-error0', 'liblz4-1'],
  ...['liblzma5', 'libzstd1', 'libicu72', 'libstdc++6', 'libgcc-s1', 'libtinfo6', 'libbsd0', 'libmd0', 'libbz2-1.0'],
]
const PHP_MODULES = 'usr/lib/php/20220829'

/** Without options in the URL, but for a CA. */
const JAVA_PROGRAM = `import java.sql.*;
public class Client {
  public static void main(String[] of) throws Exception {
    var url = "jdbc:mysql://" + of[0] + ":" + of[1] + "/" + of[2];
    if (of.length > 5) url += "?sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreUrl=file:" + of[5] + "&trustCertificateKeyStorePassword=changeit";
    try (var session = DriverManager.getConnection(url, of[3], of[4]); var found = session.createStatement().executeQuery("SELECT USER()")) {
      found.next();
      System.out.println(found.getString(1).split("@")[0]);
    }
  }
}
`

/** By both of PHP's interfaces, which share mysqlnd. */
const PHP_PROGRAM = `
[, $host, $port, $name, $user, $password] = $argv;
$ca = $argv[6] ?? null;
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$session = mysqli_init();
if ($ca) $session->ssl_set(null, null, $ca, null, null);
$session->real_connect($host, $user, $password, $name, (int) $port, null, $ca ? MYSQLI_CLIENT_SSL : 0);
$first = $session->query('SELECT USER()')->fetch_row()[0];
$pdo = new PDO("mysql:host=$host;port=$port;dbname=$name", $user, $password, $ca ? [PDO::MYSQL_ATTR_SSL_CA => $ca] : []);
if ($pdo->query('SELECT USER()')->fetchColumn() !== $first) exit(1);
echo explode('@', $first)[0], "\\n";
`

async function connectorJ(): Promise<string> {
  const root = join(CACHE, CONNECTOR_J.jar.replace('.jar', ''))
  const jar = join(root, CONNECTOR_J.jar)
  if (await exists(jar)) return jar
  await mkdir(CACHE, { recursive: true })
  const work = await mkdtemp(join(CACHE, 'installing-'))
  const into = join(work, 'jar')
  try {
    const settings = [
      `-Dartifact=${CONNECTOR_J.artifact}`,
      `-DoutputDirectory=${into}`,
      `-Dmaven.repo.local=${join(work, 'state')}`,
    ]
    await runProgram(['mvn', '--batch-mode', '--quiet', MAVEN_COPY, ...settings, '-Dmdep.useBaseVersion=true'])
    await rename(into, root).catch((error: unknown) => {
      // Another test file has installed it meanwhile.
      if (!hasCode(error, 'ENOTEMPTY')) throw error
    })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return jar
}

/** Saves the CA of an instance. @returns its path; undefined where TLS is not required */
async function caFile({ id, tls }: Instance, directory: string): Promise<string | undefined> {
  if (!tls.required) return undefined
  const path = join(directory, `${id}.pem`)
  await writeFile(path, tls.ca ?? '')
  return path
}

const partsOfLogin = ({ host, port, name, user, password }: Instance): readonly string[] => [
  host,
  `${port}`,
  name,
  user,
  password,
]

async function byJava(instance: Instance, directory: string): Promise<string> {
  const jar = await connectorJ()
  const source = join(directory, 'Client.java')
  await writeFile(source, JAVA_PROGRAM)
  const ca = await caFile(instance, directory)
  const store = ca === undefined ? [] : [`${ca}.p12`]
  if (ca !== undefined) {
    const into = ['-keystore', `${ca}.p12`, '-storetype', 'PKCS12', '-storepass', 'changeit']
    await runProgram(['keytool', '-importcert', '-noprompt', '-alias', 'mooring', '-file', ca, ...into])
  }
  return runProgram(['java', '-cp', jar, source, ...partsOfLogin(instance), ...store])
}

async function byPhp(instance: Instance, directory: string): Promise<string> {
  const php = await unpackedPackages('bookworm', PHP)
  const modules = ['mysqlnd', 'mysqli', 'pdo', 'pdo_mysql'].flatMap((name) => ['-d', `extension=${name}`])
  const ca = await caFile(instance, directory)
  const options = ['-n', '-d', `extension_dir=${join(php.root, PHP_MODULES)}`, ...modules, '-r', PHP_PROGRAM, '--']
  return runProgram([...php.command('usr/bin/php8.2'), ...options, ...partsOfLogin(instance), ...(ca === undefined ? [] : [ca])])
}

export const LANGUAGE_DRIVERS: readonly LanguageDriver[] = [
  { driver: 'Connector/J of Java', user: byJava },
  { driver: 'mysqlnd of PHP', user: byPhp },
]
