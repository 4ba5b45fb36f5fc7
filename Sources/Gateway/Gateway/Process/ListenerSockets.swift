import CLinux
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine

/// Why a listening socket could not be opened.
package struct ListenError: Error, CustomStringConvertible {
    package let listener: String
    package let endpoint: Endpoint
    package let error: Errno

    package var description: String {
        "cannot listen on \(endpoint) for listener \(listener): \(error)"
    }
}

/// The listening sockets of the process. Each configured listener has one per worker, all on one
/// address (SO_REUSEPORT), so that the kernel distributes the connections; the administrative
/// listener has only the first worker's.
///
/// A listener may also take over sockets that the service manager passed (`fd:NAME`). Where there
/// are as many of an address as workers, or a multiple, each worker has its own; otherwise all
/// workers accept from all of them. A worker gets descriptors of its own, which it closes. The
/// passed ones stay open, so that a later configuration can use the sockets, too.
final class ListenerSockets {
    static let adminName = "admin"

    private let workers: Int
    private let routes: RouteLabels
    private var passed: [PassedSocket]
    /// What was configured and what it is bound to; a port of 0 keeps the port it got.
    private var bound: [Bound] = []

    private struct Bound {
        var name: String
        var asked: Endpoint
        var actual: Endpoint
        var isAdmin: Bool
        /// The number of workers that have a socket on it: the first ones.
        var workers: Int
        /// The sockets' inode numbers.
        var inodes: Set<UInt64>
        /// The name under which they were passed; `nil` if they were opened here.
        var passedAs: String?
    }

    init(workers: Int, routes: RouteLabels, passed: [PassedSocket] = []) {
        self.workers = workers
        self.routes = routes
        self.passed = passed
    }

    /// Closes the passed sockets that a configuration does not use, and returns them.
    func closeUnused(by configuration: ConfigurationSnapshot) -> [PassedSocket] {
        let used = configuration.passedNames
        let unused = passed.filter { !used.contains($0.name) }
        passed.removeAll { !used.contains($0.name) }
        for socket in unused { Descriptors.close(socket.descriptor) }
        return unused
    }

    /// The addresses of IPv4 on which passed sockets for both families listen.
    var endpointsOfIPv4: [Endpoint] {
        passed.compactMap { one in
            guard case .listening(let endpoint, isDualStack: true) = one.socket else { return nil }
            return Endpoint(address: .v4(0), port: endpoint.port)
        }
    }

    /// Opens what the configuration requires and is not open yet. Returns one list per worker; a
    /// descriptor of -1 stands for a socket that the worker already has.
    func open(_ configuration: ConfigurationSnapshot) throws(ListenError) -> [[ListenerSocket]] {
        var perWorker = [[ListenerSocket]](repeating: [], count: workers)
        var now: [Bound] = []
        var opened: [Int32] = []
        let labels = routes.listenerIndexes(configuration.listeners.map(\.name))
        do throws(ListenError) {
            for (listener, label) in zip(configuration.listeners, labels) {
                let socket = ListenerSocket(
                    name: listener.name, endpoint: listener.address, role: Self.role(listener),
                    label: label, descriptor: -1)
                try open(
                    socket, listener.passed, on: workers, &perWorker, &now, &opened)
            }
            let admin = ListenerSocket(
                name: Self.adminName, endpoint: configuration.admin.address, role: .admin,
                label: .other, descriptor: -1)
            try open(admin, configuration.admin.passed, on: 1, &perWorker, &now, &opened)
        } catch {
            for descriptor in opened { Descriptors.close(descriptor) }
            throw error
        }
        bound = now
        return perWorker
    }

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
        _ socket: ListenerSocket, _ address: PassedAddress?, on workers: Int,
        _ perWorker: inout [[ListenerSocket]], _ now: inout [Bound], _ opened: inout [Int32]
    ) throws(ListenError) {
        if let address {
            return try take(socket, address, on: workers, &perWorker, &now, &opened)
        }
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
            throw ListenError(listener: socket.name, endpoint: asked, error: error)
        }
        now.append(
            Bound(
                name: socket.name, asked: asked, actual: socket.endpoint, isAdmin: socket.isAdmin,
                workers: workers, inodes: inodes))
    }

    /// Takes over the passed sockets of an address, one set for each endpoint.
    private func take(
        _ socket: ListenerSocket, _ address: PassedAddress, on workers: Int,
        _ perWorker: inout [[ListenerSocket]], _ now: inout [Bound], _ opened: inout [Int32]
    ) throws(ListenError) {
        for endpoint in address.endpoints {
            let sources = passed.filter { $0.name == address.name && $0.endpoint == endpoint }
            var socket = socket
            socket.endpoint = endpoint
            socket.passedAs = address.name
            socket.isShared = !sources.count.isMultiple(of: workers)
            let isKnown = bound.contains {
                $0.passedAs == address.name && $0.actual == endpoint && $0.isAdmin == socket.isAdmin
            }
            for worker in 0..<workers {
                for (index, source) in sources.enumerated()
                where socket.isShared || index % workers == worker {
                    socket.descriptor = -1
                    if !isKnown {
                        do throws(Errno) {
                            socket.descriptor = try Sockets.duplicate(
                                ofListening: source.descriptor)
                        } catch {
                            throw ListenError(
                                listener: socket.name, endpoint: endpoint, error: error)
                        }
                        opened.append(socket.descriptor)
                    }
                    perWorker[worker].append(socket)
                }
            }
            let inodes = sources.compactMap { ListeningSockets.inode(of: $0.descriptor) }
            now.append(
                Bound(
                    name: socket.name, asked: endpoint, actual: endpoint, isAdmin: socket.isAdmin,
                    workers: workers, inodes: Set(inodes), passedAs: address.name))
        }
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
            $0.passedAs == nil && $0.asked == asked
                && (asked.port != 0 || ($0.name == name && $0.isAdmin == isAdmin))
        }
    }
}
