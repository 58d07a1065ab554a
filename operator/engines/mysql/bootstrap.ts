/** Scripts of MariaDB's `mariadb-install-db`, in its order. The texts of HELP are left out: they are a third of the work. */
export const SCRIPTS = [
  ...['mysql_system_tables', 'mysql_performance_tables', 'mysql_system_tables_data'],
  ...['maria_add_gis_sp_bootstrap', 'mysql_sys_schema'],
]

/** Statements before the scripts, with values that these expect: no account by socket, no anonymous accounts. */
export const BEFORE_SCRIPTS = [
  'CREATE DATABASE IF NOT EXISTS mysql;',
  'USE mysql;',
  'SET @auth_root_socket = NULL;',
  'SET @skip_auth_anonymous = 1;',
]

/** Statements after the scripts, which create root without a password for several hosts. */
export const AFTER_SCRIPTS = ["DELETE FROM mysql.global_priv WHERE User = 'root';"]

/**
 * Option of the program of MySQL that creates a data directory: tablespaces for undo records, which a server can only truncate when there are two.
 * MySQL 8.0 always has them. A MariaDB removes them at a start without the option, or does not start with it, depending on its version.
 */
export const UNDO_TABLESPACES = '--loose-innodb-undo-tablespaces=2'

/** Options of the server that reads the statements. */
export const BOOTSTRAP = ['--log-warnings=0', '--enforce-storage-engine=']
