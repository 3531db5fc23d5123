/* Opens of files in a folder are answered by a server, for shells and tools whose C library is this one's.
 *
 * KPROBES_TRACEFS: the folder; its files are empty, and say what there is.
 * KPROBES_TRACEFS_SERVER: path of the server's socket (SOCK_SEQPACKET).
 * KPROBES_TRACEFS_PROC: a folder with stand-ins of some files in /proc.
 *
 * A request is a packet: a letter, and the path or text. Its answer begins with two numbers of 32 bits: errno, and bytes
 * that follow. Files that are read become files in memory; those that are written are the connection itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const STAND_INS[] = {"/proc/kallsyms", "/proc/mounts", "/proc/sys/kernel/sched_rt_runtime_us"};

static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_openat)(int, const char *, int, ...);
static pid_t (*next_fork)(void);
static int (*next_symlinkat)(const char *, int, const char *);

__attribute__((constructor)) static void look_up(void)
{
	next_write = dlsym(RTLD_NEXT, "write");
	next_openat = dlsym(RTLD_NEXT, "openat");
	next_fork = dlsym(RTLD_NEXT, "fork");
	next_symlinkat = dlsym(RTLD_NEXT, "symlinkat");
}

static int connected(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("KPROBES_TRACEFS_SERVER");
	int fd;

	if (path == NULL || strlen(path) >= sizeof address.sun_path)
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether a descriptor is a connection to the server. */
static int is_served(int fd)
{
	struct sockaddr_un address;
	socklen_t size = sizeof address;
	const char *path = getenv("KPROBES_TRACEFS_SERVER");

	memset(&address, 0, sizeof address);
	return path != NULL && getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
	       address.sun_family == AF_UNIX && strcmp(address.sun_path, path) == 0;
}

/* The answer to a request: 0 and the bytes that follow in *size, or -1 and errno. */
static int ask(int fd, char letter, const void *text, size_t length, uint32_t *size)
{
	uint32_t answer[2];
	char *packet = malloc(length + 1);

	if (packet == NULL)
		return -1;
	packet[0] = letter;
	memcpy(packet + 1, text, length);
	if (send(fd, packet, length + 1, MSG_NOSIGNAL) < 0 || recv(fd, answer, sizeof answer, 0) != sizeof answer) {
		free(packet);
		errno = EIO;
		return -1;
	}
	free(packet);
	if (answer[0] != 0) {
		errno = (int)answer[0];
		return -1;
	}
	if (size != NULL)
		*size = answer[1];
	return 0;
}

/* Tell the server what has happened. */
static void tell(char letter, const char *text)
{
	int fd = connected(), saved = errno;

	if (fd < 0)
		return;
	ask(fd, letter, text, strlen(text), NULL);
	close(fd);
	errno = saved;
}

static int opened(const char *path, int flags)
{
	static char chunk[1 << 15];
	int fd = connected(), file, saved;
	uint32_t size;
	ssize_t got;

	if (fd < 0) {
		errno = EIO;
		return -1;
	}
	if ((flags & O_ACCMODE) != O_RDONLY) {
		if (ask(fd, flags & O_TRUNC ? 'T' : 'A', path, strlen(path), NULL) == 0)
			return fd;
		goto failed;
	}
	if (ask(fd, 'R', path, strlen(path), &size) < 0)
		goto failed;
	file = memfd_create("tracefs", 0);
	while (file >= 0 && size > 0 && (got = recv(fd, chunk, sizeof chunk, 0)) > 0) {
		next_write(file, chunk, (size_t)got);
		size -= (uint32_t)got;
	}
	close(fd);
	lseek(file, 0, SEEK_SET);
	return file;
failed:
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Constructors of other libraries open files before ours has run. */
static int opening(int folder, const char *path, int flags, mode_t mode)
{
	const char *root = getenv("KPROBES_TRACEFS"), *proc = getenv("KPROBES_TRACEFS_PROC");
	char whole[PATH_MAX * 2], stand_in[PATH_MAX];
	size_t length = root == NULL ? 0 : strlen(root);

	if (next_openat == NULL)
		look_up();
	if (root == NULL || proc == NULL || (folder != AT_FDCWD && path[0] != '/') || flags & O_DIRECTORY)
		return next_openat(folder, path, flags, mode);
	for (size_t n = 0; n < sizeof STAND_INS / sizeof *STAND_INS; n++)
		if (strcmp(path, STAND_INS[n]) == 0) {
			snprintf(stand_in, sizeof stand_in, "%s%s", proc, strrchr(path, '/'));
			return next_openat(AT_FDCWD, stand_in, flags, mode);
		}
	whole[0] = 0;
	if (path[0] != '/' && getcwd(whole, PATH_MAX) != NULL)
		strcat(whole, "/");
	strncat(whole, path, PATH_MAX - 1);
	if (strncmp(whole, root, length) == 0 && whole[length] == '/' && strcmp(whole + length, "/.") != 0)
		return opened(whole + length + 1, flags);
	tell('O', path);
	return next_openat(folder, path, flags, mode);
}

#define WITH_MODE(mode, flags)                       \
	mode_t mode = 0;                             \
	if ((flags) & (O_CREAT | O_TMPFILE)) {       \
		va_list list;                        \
		va_start(list, flags);               \
		mode = va_arg(list, mode_t);         \
		va_end(list);                        \
	}

int open(const char *path, int flags, ...)
{
	WITH_MODE(mode, flags)
	return opening(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	WITH_MODE(mode, flags)
	return opening(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	WITH_MODE(mode, flags)
	return opening(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
	WITH_MODE(mode, flags)
	return opening(folder, path, flags, mode);
}

int __open_2(const char *path, int flags) { return opening(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opening(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return opening(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return opening(folder, path, flags, 0); }

FILE *fopen(const char *path, const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
	int fd;

	flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
	flags |= strchr(mode, 'e') ? O_CLOEXEC : 0;
	fd = opening(AT_FDCWD, path, flags, 0666);
	return fd < 0 ? NULL : fdopen(fd, mode);
}

FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

ssize_t write(int fd, const void *data, size_t size)
{
	if (!is_served(fd))
		return next_write(fd, data, size);
	return ask(fd, 'W', data, size, NULL) < 0 ? -1 : (ssize_t)size;
}

pid_t fork(void)
{
	tell('F', "");
	return next_fork();
}

int symlinkat(const char *target, int folder, const char *path)
{
	tell('L', target);
	return next_symlinkat(target, folder, path);
}
