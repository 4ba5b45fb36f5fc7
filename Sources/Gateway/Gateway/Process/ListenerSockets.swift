import CLinux
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine

/// Why a listening socket could not be opened.
package struct ListenError: Error, CustomStringConvertible {
    /// What the system, or the file system, says.
    package enum Cause: Equatable, CustomStringConvertible {
        case network(Errno)
        case unix(UnixSocketError)

        package var description: String {
            switch self {
            case .network(let error): "\(error)"
            case .unix(let error): "\(error)"
            }
        }
    }

    package let listener: String
    package let address: ListenAddress
    package let cause: Cause

    package var description: String {
        "cannot listen on \(address) for listener \(listener): \(cause)"
    }
}

/// The listening sockets of the process. Each configured listener has one per worker, all on one
/// address (SO_REUSEPORT), so that the kernel distributes the connections; the administrative
/// listener has only the first worker's.
final class ListenerSockets {
    static let adminName = "admin"

    private let workers: Int
    private let routes: RouteLabels
    /// What was configured and what it is bound to; a port of 0 keeps the port it got.
    private var bound: [Bound] = []

    /// The administration's Unix socket; `nil` if it has none.
    private var file: BoundFile?

    private struct BoundFile {
        var socket: UnixSocketPath
        var identity: UnixSockets.Identity
    }

    private struct Bound {
        var name: String
        var asked: Endpoint
        var actual: Endpoint
        var isAdmin: Bool
        /// The number of workers that have a socket on it: the first ones.
        var workers: Int
        /// The sockets' inode numbers.
        var inodes: Set<UInt64>
    }

    init(workers: Int, routes: RouteLabels) {
        self.workers = workers
        self.routes = routes
    }

    /// Opens what the configuration requires and is not open yet. Returns one list per worker; a
    /// descriptor of -1 stands for a socket that the worker already has.
    func open(_ configuration: ConfigurationSnapshot) throws(ListenError) -> [[ListenerSocket]] {
        var perWorker = [[ListenerSocket]](repeating: [], count: workers)
        var now: [Bound] = []
        var opened: [Int32] = []
        var file: BoundFile?
        let labels = routes.listenerIndexes(configuration.listeners.map(\.name))
        do throws(ListenError) {
            for (listener, label) in zip(configuration.listeners, labels) {
                let socket = ListenerSocket(
                    name: listener.name, endpoint: listener.address, role: Self.role(listener),
                    label: label, descriptor: -1)
                try open(socket, on: workers, &perWorker, &now, &opened)
            }
            var admin = ListenerSocket(
                name: Self.adminName, endpoint: .unnamed, role: .admin, label: .other,
                descriptor: -1)
            switch configuration.admin.address {
            case .network(let endpoint):
                admin.endpoint = endpoint
                try open(admin, on: 1, &perWorker, &now, &opened)
            case .unix(let socket):
                admin.path = socket.path
                // The last one: nothing can fail after it.
                (admin.descriptor, file) = try open(socket)
                perWorker[0].append(admin)
            }
        } catch {
            for descriptor in opened { Descriptors.close(descriptor) }
            throw error
        }
        bound = now
        if let former = self.file, former.socket.path != file?.socket.path { remove(former) }
        self.file = file
        return perWorker
    }

    // MARK: The Unix socket

    /// Opens the administration's Unix socket, unless it is open.
    private func open(
        _ socket: UnixSocketPath
    ) throws(ListenError) -> (descriptor: Int32, file: BoundFile) {
        if var known = file, known.socket.path == socket.path {
            if known.socket.mode != socket.mode {
                UnixSockets.setMode(socket.mode, of: socket.path, ifStill: known.identity)
                known.socket.mode = socket.mode
            }
            return (-1, known)
        }
        do throws(UnixSocketError) {
            let (descriptor, identity) = try UnixSockets.listen(at: socket)
            return (descriptor, BoundFile(socket: socket, identity: identity))
        } catch {
            throw ListenError(
                listener: Self.adminName, address: .unix(socket), cause: .unix(error))
        }
    }

    /// Removes the file of the Unix socket at the end, unless a successor has taken its path.
    func removeFile() {
        if let file = file.take() { remove(file) }
    }

    /// Leaves the file of the Unix socket to a successor, which has got the socket itself.
    func leaveFile() { file = nil }

    private func remove(_ file: BoundFile) {
        UnixSockets.remove(file.socket.path, ifStill: file.identity)
    }

    // MARK: Addresses of the network

    private static func role(_ listener: ListenerConfiguration) -> Ingress.Role {
        switch listener.kind {
        case .forward: return .forward
        case .reverse(let upstream):
            var forwarding = listener.forwarding
            forwarding.clientsSpeakTLS = listener.tls != nil
            return .reverse(
                ReverseUpstream(
                    host: upstream.host, port: upstream.port,
                    isSecure: upstream.scheme == .https, forwarding: forwarding))
        }
    }

    private func open(
        _ socket: ListenerSocket, on workers: Int, _ perWorker: inout [[ListenerSocket]],
        _ now: inout [Bound], _ opened: inout [Int32]
    ) throws(ListenError) {
        var socket = socket
        let asked = socket.endpoint
        let known = self.known(name: socket.name, asked, isAdmin: socket.isAdmin)
        if let known { socket.endpoint = known.actual }
        var inodes = known?.inodes ?? []
        do throws(Errno) {
            if known == nil { try Sockets.checkFree(asked, apartFrom: ours(with: now)) }
            for worker in 0..<workers {
                if worker < known?.workers ?? 0 {
                    socket.descriptor = -1
                } else {
                    socket.descriptor = try Sockets.listen(on: socket.endpoint)
                    opened.append(socket.descriptor)
                    if let inode = ListeningSockets.inode(of: socket.descriptor) {
                        inodes.insert(inode)
                    }
                    socket.endpoint = Sockets.localEndpoint(socket.descriptor) ?? asked
                }
                perWorker[worker].append(socket)
            }
        } catch {
            throw ListenError(
                listener: socket.name, address: .network(asked), cause: .network(error))
        }
        now.append(
            Bound(
                name: socket.name, asked: asked, actual: socket.endpoint, isAdmin: socket.isAdmin,
                workers: workers, inodes: inodes))
    }

    /// The inode numbers of our sockets: a listener that moves from one address of its port to all
    /// of them conflicts only with itself.
    private func ours(with now: [Bound]) -> Set<UInt64> {
        (bound + now).reduce(into: []) { $0.formUnion($1.inodes) }
    }

    /// The open socket for the listener, or for another one at the same address. Ports chosen by
    /// the system differ although they were configured alike: for those the name decides, which a
    /// listener may share with the administration.
    private func known(name: String, _ asked: Endpoint, isAdmin: Bool) -> Bound? {
        bound.first {
            $0.asked == asked && (asked.port != 0 || ($0.name == name && $0.isAdmin == isAdmin))
        }
    }
}
