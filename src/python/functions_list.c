/*
 * functions_list.c: prints the table of operations for the programs that make stubs and pages of it.
 *
 * A line for each row, fields separated by tabs: name, aliases, signature, forms (genesis/function.h).
 */
#include "genesis/genesis.h"

#include <stdio.h>

static void print_row(const char *name, const char *aliases, const char *signature, unsigned forms)
{
    if (name[0] != '\0' && (forms & GN_FORM_OPTIONS) == 0)
        printf("%s\t%s\t%s\t%u\n", name, aliases != NULL ? aliases : "", signature, forms);
}

int main(void)
{
    enum {
        ELEMENTWISE = GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_OUT,
    };
    const gn_function *row;
#define PRINT(NAME, c_name, arity, domain, name, aliases, signature, text) \
    print_row(name, aliases, signature, ELEMENTWISE);
    GN_OP_LIST(PRINT)
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++)
            print_row(row->name, row->aliases, row->signature, row->forms);
    return ferror(stdout) != 0;
}
