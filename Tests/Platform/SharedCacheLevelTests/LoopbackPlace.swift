import CLinux
import EventLoop
import HTTPCore

/// An address of this machine and a port of it that nothing else listens on. Each test draws one of
/// its own: all of 127.0.0.0/8 is this machine, and the ports are none that the system gives to
/// clients.
struct LoopbackPlace: CustomStringConvertible {
    let host: String
    let port: UInt16

    struct PlaceError: Error {}

    /// - Parameter host: `nil` for one of its own.
    static func drawn(_ host: String? = nil) throws -> LoopbackPlace {
        for _ in 0..<100 {
            let own = (0..<3).map { _ in "\(Int.random(in: 1...254))" }
            let host = host ?? "127." + own.joined(separator: ".")
            let port = UInt16.random(in: 20_000...29_999)
            guard let address = IPAddress(literal: Array(host.utf8).span) else { break }
            if let descriptor = try? Sockets.listen(on: Endpoint(address: address, port: port)) {
                Descriptors.close(descriptor)
                return LoopbackPlace(host: host, port: port)
            }
        }
        throw PlaceError()
    }

    var description: String { "\(host) \(port)" }
}
