/* What systemd 252 makes of Environment=, of an environment file and of $VARIABLE in an ExecStart=, asked of its own libraries.
 *
 * Arguments: libsystemd-shared-252.so, libsystemd-core-252.so. A case is a line of standard input: [KIND, "TEXT"] with its bytes in
 * hex, where KIND is "unit", "file" or "words". The answer is a line of JSON: a list of strings in hex, or null for a refusal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* systemd 252 src/shared/conf-parser.h */
typedef int (*Lookup)(const void *, const char *, const char *, void *, int *, void **, void *);
struct Item {
        const char *section, *key;
        void *parse;
        int type;
        void *data;
};

static void *loaded(void *found) {
        if (!found) {
                fprintf(stderr, "%s\n", dlerror());
                exit(1);
        }
        return found;
}

static void print(char **strings) {
        const char *comma = "";
        putchar('[');
        for (; strings && *strings; strings++, comma = ",") {
                printf("%s\"", comma);
                for (const char *c = *strings; *c; c++)
                        printf("%02x", (unsigned char) *c);
                putchar('"');
        }
        puts("]");
}

int main(int argc, char **argv) {
        if (argc != 3)
                return 2;
        void *shared = loaded(dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)), *core = loaded(dlopen(argv[2], RTLD_NOW));
        char **(*replace_env_argv)(char **, char **) = loaded(dlsym(shared, "replace_env_argv"));
        int (*load_env_file)(FILE *, const char *, char ***) = loaded(dlsym(shared, "load_env_file"));
        int (*config_parse)(const char *, const char *, FILE *, const char *, Lookup, const void *, int, void *, void *) =
                loaded(dlsym(shared, "config_parse"));
        Lookup table_lookup = loaded(dlsym(shared, "config_item_table_lookup"));
        void (*log_set_max_level)(int) = loaded(dlsym(shared, "log_set_max_level"));
        void *parse_environ = loaded(dlsym(core, "config_parse_environ"));
        log_set_max_level(0);

        char *line = NULL, kind[8];
        size_t size = 0;
        while (getline(&line, &size, stdin) > 0) {
                char *text = calloc(strlen(line), 1), **strings = NULL;
                int skip = 0, refused;
                if (!text || sscanf(line, "[\"%7[a-z]\",\"%n", kind, &skip) != 1 || !skip)
                        return 2;
                for (unsigned at = 0, byte; sscanf(line + skip + 2 * at, "%2x", &byte) == 1; at++)
                        text[at] = (char) byte;
                if (strcmp(kind, "words") == 0) {
                        char *assignment = NULL;
                        if (asprintf(&assignment, "X=%s", text) < 0)
                                return 2;
                        strings = replace_env_argv((char *[]) { "$X", NULL }, (char *[]) { assignment, NULL });
                        refused = !strings;
                } else {
                        FILE *file = *text ? fmemopen(text, strlen(text), "r") : fopen("/dev/null", "r");
                        if (!file)
                                return 2;
                        if (strcmp(kind, "file") == 0)
                                refused = load_env_file(file, "file", &strings) < 0;
                        else {
                                struct Item items[] = { { "Service", "Environment", parse_environ, 0, &strings }, { 0 } };
                                refused = config_parse(NULL, "unit", file, "Service\0", table_lookup, items, 0, NULL, NULL) < 0;
                        }
                        fclose(file);
                }
                if (refused)
                        puts("null");
                else
                        print(strings);
                fflush(stdout);
        }
        return 0;
}
