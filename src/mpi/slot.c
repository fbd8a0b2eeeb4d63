/* What mpirun starts in place of a rank that torchrun has started already: see collective/slots.h.
 *
 * usage: millrace-mpi-slot NAME   the socket of rank k is NAMEk */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

static bool is_of_this_user(int to) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(to, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static bool send_all(int to, const char *bytes, size_t size) {
    while (size) {
        ssize_t sent = send(to, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* What MPI reads. */
static bool send_environment(int to) {
    for (char **at = environ; *at; at++)
        if (strncmp(*at, "PMIX_", 5) == 0 || strncmp(*at, "OMPI_", 5) == 0)
            if (!send_all(to, *at, strlen(*at) + 1)) return false;
    return send_all(to, "", 1);
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char end;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 2 || !rank) {
        fprintf(stderr, "millrace: %s is started by a rank, with the mpirun of Open MPI\n",
                argv[0]);
        return 1;
    }
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%s", argv[1], rank);
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* All ranks have listened when mpirun was started. */
    bool fine =
        connect(to, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0;
    fine = fine && is_of_this_user(to) && send_environment(to);
    /* The rank sends a byte if it ends normally. */
    if (fine && read(to, &end, 1) == 1) return 0;
    fprintf(stderr, "millrace: rank %s was killed, has crashed or aborted: all ranks are ended\n",
            rank);
    return 1;
}
