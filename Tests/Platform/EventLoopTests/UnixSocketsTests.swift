import CLinux
import HTTPCore
import TestSupport
import Testing

@testable import EventLoop

private func mode(of path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
}

/// A listening socket, its file's identity, and the descriptor's owner.
private func listening(
    _ path: String, mode: UInt32 = UnixSocketPath.defaultMode
) throws -> (socket: OwnedDescriptor, identity: UnixSockets.Identity) {
    let (descriptor, identity) = try UnixSockets.listen(
        at: UnixSocketPath(path: path, mode: mode))
    return (OwnedDescriptor(descriptor), identity)
}

@Suite("Unix sockets", .serialized) struct UnixSocketsTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.path + "/a.sock" }

    @Test(arguments: [0o600, 0o660, 0o666, 0o000] as [UInt32])
    func `a socket has the permissions that were asked for, whatever the umask`(
        wanted: UInt32
    ) throws {
        // Of the whole process: nothing else in these tests depends on it.
        let former = umask(0o027)
        defer { umask(former) }
        let (_, _) = try listening(path, mode: wanted)
        #expect(mode(of: path) == mode_t(wanted))
    }

    @Test func `a client is accepted, and known by its process`() throws {
        let listener = try listening(path)
        let client = OwnedDescriptor(try UnixSockets.connect(to: path))
        guard case .connection(let fd, let peer) = Sockets.accept(listener.socket.fd) else {
            Issue.record("not accepted")
            return
        }
        let accepted = OwnedDescriptor(fd)
        #expect(peer == .unnamed)
        #expect(
            UnixSockets.peer(of: accepted.fd)
                == PeerProcess(pid: getpid(), user: getuid(), group: getgid()))
        #expect(Sockets.localEndpoint(accepted.fd) == nil)
        #expect(write(client.fd, "x", 1) == 1)
        #expect(waitFor(POLLIN, on: accepted.fd))
    }

    @Test func `a connection that must not wait is made at once, or says why not`() throws {
        func error(_ path: String) -> Int32? {
            do throws(Errno) {
                Descriptors.close(try UnixSockets.connectAtOnce(to: path))
                return nil
            } catch {
                return error.code
            }
        }
        #expect(error(path) == ENOENT)
        #expect(error(folder.path + "/" + String(repeating: "a", count: 200)) == ENAMETOOLONG)
        let (descriptor, _) = try UnixSockets.listen(at: UnixSocketPath(path: path), backlog: 0)
        // One waits to be accepted, and the queue is full.
        let first = OwnedDescriptor(try UnixSockets.connectAtOnce(to: path))
        #expect(fcntl_int(first.fd, F_GETFL, 0) & O_NONBLOCK != 0)
        #expect(fcntl_int(first.fd, F_GETFD, 0) & FD_CLOEXEC != 0)
        #expect(error(path) == EAGAIN)
        guard case .connection(let accepted, _) = Sockets.accept(descriptor) else {
            Issue.record("not accepted")
            return
        }
        #expect(error(path) == nil)
        Descriptors.close(accepted)
        Descriptors.close(descriptor)
        #expect(error(path) == ECONNREFUSED, "the file is left")
    }

    @Test func `a socket that was left behind is replaced`() throws {
        do { _ = try listening(path) }
        #expect(mode(of: path) != nil, "nobody has removed it")
        let listener = try listening(path)
        let client = OwnedDescriptor(try UnixSockets.connect(to: path))
        withExtendedLifetime((listener, client)) {}
    }

    @Test func `a socket on which somebody listens is not replaced`() throws {
        let first = try listening(path)
        #expect(throws: UnixSocketError.inUse) { _ = try listening(path) }
        #expect(throws: UnixSocketError.inUse) { _ = try listening(path) }
        let client = OwnedDescriptor(try UnixSockets.connect(to: path))
        withExtendedLifetime((first, client)) {}
    }

    @Test func `a socket whose queue is full is in use, too`() throws {
        let descriptor = try UnixSockets.listen(at: UnixSocketPath(path: path), backlog: 0)
            .descriptor
        let first = OwnedDescriptor(descriptor)
        let client = OwnedDescriptor(try UnixSockets.connect(to: path))
        #expect(throws: UnixSocketError.inUse) { _ = try listening(path) }
        withExtendedLifetime((first, client)) {}
    }

    @Test func `anything else stays what it is`() throws {
        let file = OwnedDescriptor(open_with_mode(path, O_WRONLY | O_CREAT, 0o600))
        #expect(throws: UnixSocketError.notASocket) { _ = try listening(path) }
        unlink(path)
        symlink("/nowhere", path)
        #expect(throws: UnixSocketError.notASocket) { _ = try listening(path) }
        unlink(path)
        mkdir(path, 0o700)
        #expect(throws: UnixSocketError.notASocket) { _ = try listening(path) }
        rmdir(path)
        withExtendedLifetime(file) {}
    }

    @Test func `a path that cannot be used says why`() throws {
        let long = folder.path + "/" + String(repeating: "x", count: 107)
        #expect(throws: UnixSocketError.pathTooLong) { _ = try listening(long) }
        #expect(throws: UnixSocketError.pathTooLong) { _ = try UnixSockets.connect(to: long) }
        #expect(throws: UnixSocketError.folder(Errno(code: ENOENT))) {
            _ = try listening(folder.path + "/none/a.sock")
        }
        let file = OwnedDescriptor(open_with_mode(folder.path + "/f", O_WRONLY | O_CREAT, 0o600))
        #expect(throws: UnixSocketError.folder(Errno(code: ENOTDIR))) {
            _ = try listening(folder.path + "/f/a.sock")
        }
        #expect("\(UnixSocketError.folder(Errno(code: ENOENT)))" == "its folder does not exist")
        withExtendedLifetime(file) {}
    }

    @Test func `the longest path is usable`() throws {
        let name = String(repeating: "x", count: 107 - folder.path.utf8.count - 1)
        let longest = folder.path + "/" + name
        #expect(longest.utf8.count == UnixSocketPath.maximumBytes)
        let listener = try listening(longest)
        let client = OwnedDescriptor(try UnixSockets.connect(to: longest))
        withExtendedLifetime((listener, client)) {}
    }

    @Test func `at the end only the own file is removed`() throws {
        let first = try listening(path)
        UnixSockets.setAccess(
            of: UnixSocketPath(path: path, mode: 0o640), ifStill: first.identity)
        #expect(mode(of: path) == 0o640)
        // A successor has taken the path.
        unlink(path)
        let successor = try listening(path)
        UnixSockets.setAccess(
            of: UnixSocketPath(path: path, mode: 0o666), ifStill: first.identity)
        #expect(mode(of: path) == 0o600)
        UnixSockets.remove(path, ifStill: first.identity)
        #expect(mode(of: path) != nil)
        UnixSockets.remove(path, ifStill: successor.identity, unlessInUse: true)
        #expect(mode(of: path) != nil, "it is in use")
        UnixSockets.remove(path, ifStill: successor.identity)
        #expect(mode(of: path) == nil)
        UnixSockets.remove(path, ifStill: successor.identity)
    }
}
