import EventLoop
import HTTPCore

/// The Unix sockets of the process: of listeners, from which all workers accept, and of the
/// administration. Each has a file, which is removed with it.
///
/// A change of the configuration is one transaction: ``begin()``, ``open`` for each, and then
/// either ``commit()``, after which those are gone that were not named, or ``cancel()``.
struct UnixListeners {
    private struct Bound {
        var name: String
        var isAdmin: Bool
        var socket: UnixSocketPath
        var identity: UnixSockets.Identity
        /// Our own descriptor of it.
        var kept: Int32

        func hasOtherAccess(than other: Bound) -> Bool {
            socket.path == other.socket.path && socket != other.socket
        }
    }

    private let predecessor: Predecessor?
    private var bound: [Bound] = []
    private var next: [Bound] = []
    /// What workers were given in this transaction.
    private var given: [Int32] = []
    /// Whether the files are a successor's.
    var leavesFiles = false

    init(predecessor: Predecessor?) { self.predecessor = predecessor }

    /// All of them, for a successor; the descriptors remain ours.
    var handed: [(socket: HandedSocket, descriptor: Int32)] {
        bound.map {
            (
                .opened(
                    name: $0.name, address: ListenAddress.unix($0.socket).description,
                    isAdmin: $0.isAdmin), $0.kept
            )
        }
    }

    /// Closes those of listeners that a successor does not use: nobody is to wait there.
    mutating func release(_ unused: [HandedSocket]) {
        for case .opened(let name, let address, isAdmin: false) in unused {
            bound.removeAll { one in
                guard one.name == name, !one.isAdmin,
                    ListenAddress.unix(one.socket).description == address
                else { return false }
                Descriptors.close(one.kept)
                UnixSockets.remove(one.socket.path, ifStill: one.identity)
                return true
            }
        }
    }

    // MARK: A change

    mutating func begin() {
        next = []
        given = []
    }

    /// Opens a socket, unless it is open, and gives it to so many workers.
    ///
    /// - Parameter again: whether the workers have closed theirs; otherwise -1 stands for a
    ///   descriptor of a socket that they have.
    mutating func open(
        _ socket: ListenerSocket, at path: UnixSocketPath, on workers: Int, again: Bool,
        _ perWorker: inout [[ListenerSocket]]
    ) throws(ListenError) {
        var socket = socket
        socket.endpoint = .unnamed
        socket.path = path.path
        socket.isShared = workers > 1
        do throws(UnixSocketError) {
            let known = bound.first { $0.socket.path == path.path }
            var one: Bound
            if let known {
                one = known
            } else {
                one = try opened(path, socket)
            }
            (one.socket, one.name, one.isAdmin) = (path, socket.name, socket.isAdmin)
            next.append(one)
            for worker in 0..<workers {
                socket.descriptor = -1
                if known == nil || again {
                    socket.descriptor = try UnixSockets.duplicate(one.kept)
                    given.append(socket.descriptor)
                }
                perWorker[worker].append(socket)
            }
        } catch {
            throw ListenError(listener: socket.name, address: .unix(path), cause: .unix(error))
        }
    }

    /// A socket that is not open yet: the predecessor's, or a new one.
    private func opened(
        _ path: UnixSocketPath, _ socket: ListenerSocket
    ) throws(UnixSocketError) -> Bound {
        var socketAndFile = handed(to: path)
        if socketAndFile == nil { socketAndFile = try UnixSockets.listen(at: path) }
        guard let (descriptor, identity) = socketAndFile else { throw .inUse }
        return Bound(
            name: socket.name, isAdmin: socket.isAdmin, socket: path, identity: identity,
            kept: descriptor)
    }

    /// The predecessor's socket at a path, with its file.
    private func handed(
        to path: UnixSocketPath
    ) -> (descriptor: Int32, identity: UnixSockets.Identity)? {
        let handed = predecessor?.takeSockets {
            $0.address == ListenAddress.unix(path).description
        }
        guard let descriptor = handed?.first?.descriptor else { return nil }
        guard let identity = UnixSockets.identity(of: path.path) else {
            // Somebody has removed the file: nobody could connect.
            Descriptors.close(descriptor)
            return nil
        }
        UnixSockets.setAccess(of: path, ifStill: identity)
        return (descriptor, identity)
    }

    /// The change is done: sockets that were not named are closed, and their files removed.
    mutating func commit() {
        let paths = Set(next.map(\.socket.path))
        for former in bound where !paths.contains(former.socket.path) { remove(former) }
        for one in next where bound.contains(where: { $0.hasOtherAccess(than: one) }) {
            UnixSockets.setAccess(of: one.socket, ifStill: one.identity)
        }
        bound = next
        begin()
    }

    /// The change is not done: what was opened for it is closed.
    mutating func cancel() {
        for descriptor in given { Descriptors.close(descriptor) }
        let paths = Set(bound.map(\.socket.path))
        for one in next where !paths.contains(one.socket.path) { remove(one) }
        begin()
    }

    /// Closes those of listeners: when the workers have closed theirs, nobody listens there.
    mutating func leave() {
        for one in bound where !one.isAdmin { remove(one) }
        bound.removeAll { !$0.isAdmin }
    }

    /// Closes all, and removes their files.
    mutating func close() {
        for one in bound { remove(one) }
        bound = []
    }

    private func remove(_ one: Bound) {
        Descriptors.close(one.kept)
        // The successor has the same socket, or it listens elsewhere.
        UnixSockets.remove(one.socket.path, ifStill: one.identity, unlessInUse: leavesFiles)
    }
}
