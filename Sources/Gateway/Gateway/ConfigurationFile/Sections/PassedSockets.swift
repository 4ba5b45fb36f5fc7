import EventLoop
import HTTPCore
import PinfoldConfiguration
import Supervision

/// A descriptor that the service manager passed to the gateway, and what it is.
package struct PassedSocket: Sendable, Equatable {
    /// The name that the manager gave it.
    package var name: String
    package var descriptor: Int32
    package var socket: InheritedSocket

    package init(name: String, descriptor: Int32, socket: InheritedSocket) {
        self.name = name
        self.descriptor = descriptor
        self.socket = socket
    }

    /// The address that it listens on; `nil` for a Unix socket, and if it is of no use to a
    /// listener.
    package var endpoint: Endpoint? {
        if case .listening(let endpoint, _) = socket { endpoint } else { nil }
    }

    /// The path of the Unix socket; `nil` if it is none.
    package var unixPath: String? {
        if case .listeningOnUnix(let path) = socket { path } else { nil }
    }
}

extension PassedDescriptors {
    /// What each of them is.
    package var sockets: [PassedSocket] {
        all.map {
            PassedSocket(
                name: $0.name, descriptor: $0.number, socket: Sockets.inherited($0.number))
        }
    }
}

// `address: fd:NAME`, of a listener and of the administration.
extension SnapshotReader {
    /// The expected value of an address.
    static let addressExpected = """
        an address and a port, such as 127.0.0.1:8080 or [::1]:8080 (port 0 lets the system \
        choose), unix: and the path of a Unix socket, or fd:NAME for a socket from the service \
        manager
        """

    /// Where something listens.
    enum WrittenAddress {
        case own(Endpoint)
        case passed(PassedAddress)

        /// The address, or the first of them; any, if none is known.
        var endpoint: Endpoint {
            switch self {
            case .own(let endpoint): endpoint
            case .passed(let passed): passed.endpoints.first ?? .unnamed
            }
        }

        /// The sockets, or `nil` if there are none yet.
        var passed: PassedAddress? { if case .passed(let passed) = self { passed } else { nil } }
    }

    /// An address to listen on; `localhost` is 127.0.0.1.
    func writtenAddress(_ field: Field) -> WrittenAddress? {
        if case .scalar(let text, _) = field.node.content, text.hasPrefix(PassedAddress.prefix) {
            let name = String(text.dropFirst(PassedAddress.prefix.count))
            return passedAddress(named: name, field).map { .passed($0) }
        }
        return field.parsed(expected: Self.addressExpected) { text -> Endpoint? in
            if text.hasPrefix("localhost:") {
                return Endpoint("127.0.0.1" + text.dropFirst("localhost".count))
            }
            return Endpoint(text)
        }.map { .own($0) }
    }

    /// The sockets with a name, if they are there and can be listened on.
    private func passedAddress(named name: String, _ field: Field) -> PassedAddress? {
        guard Self.isSocketName(name) else {
            field.fail(
                "\(quoted(PassedAddress.prefix + name)) has no valid name",
                expected: "fd: and a FileDescriptorName: 1 to 255 printable ASCII characters, no :")
            return nil
        }
        guard let sockets = validation.environment.sockets else {
            field.warn(
                "the service manager passes \(PassedAddress.prefix)\(name) only to the gateway "
                    + "that it starts: whether there is such a socket, and which clients reach it, "
                    + "is not verified here")
            return PassedAddress(name: name)
        }
        let named = sockets.filter { $0.name == name }
        guard !named.isEmpty else {
            field.fail(
                "no socket named \(quoted(name)) was passed to this process",
                expected: Self.expected(names: sockets.map(\.name)))
            return nil
        }
        var endpoints: [Endpoint] = []
        var paths: [String] = []
        for one in named {
            switch one.socket {
            case .listening(let endpoint, _):
                if !endpoints.contains(endpoint) { endpoints.append(endpoint) }
            case .listeningOnUnix(let path): if !paths.contains(path) { paths.append(path) }
            case .unusable(let problem):
                field.fail(
                    "descriptor \(one.descriptor), named \(quoted(name)), \(problem)",
                    expected: "a listening TCP or Unix socket (ListenStream= of a socket unit)")
                return nil
            }
        }
        return PassedAddress(name: name, endpoints: endpoints, unixPaths: paths)
    }

    private static func isSocketName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count)
            && name.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: ":") }
    }

    private static func expected(names: [String]) -> String {
        if names.isEmpty {
            return "a socket unit of that FileDescriptorName; no sockets were passed (LISTEN_FDS)"
        }
        let known = Set(names).sorted().map { PassedAddress.prefix + $0 }
        return "one of \(known.joined(separator: ", "))"
    }
}
