/* The program of the screenshots: SQLite fills a table, asks it, and gives a sum. */
#include <sqlite3.h>

static int count_row(void *total, int columns, char **values, char **names) {
    (void)columns, (void)values, (void)names;
    ++*(int *)total;
    return 0;
}

__attribute__((noinline)) int query(int rows) {
    sqlite3 *db;
    sqlite3_stmt *insert;
    int total = 0;

    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 1, (sqlite3 *)0); /* the guest has no /dev/urandom */
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) {
        sqlite3_close(db);
        return -1;
    }
    sqlite3_exec(db, "create table words (number integer primary key, word text, length integer)", 0, 0, 0);
    sqlite3_prepare_v2(db, "insert into words values (?1, hex(?1 * 7919 % 1009), ?1 % 17)", -1, &insert, 0);
    for (int n = 0; n < rows; n++) {
        sqlite3_bind_int(insert, 1, n);
        sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(db, "create index by_word on words (word)", 0, 0, 0);
    sqlite3_exec(db, "select length, count(*), max(word) from words where word like '%3%' group by length order by 3", count_row, &total, 0);
    sqlite3_close(db);
    return total;
}

int main(void) { return query(20) != 17; }
