import CLinux

/// The address of the socket on which a service manager takes notifications, as in NOTIFY_SOCKET
/// (sd_notify(3)): a path, or a name in the abstract namespace, written with `@` (unix(7)).
package struct NotificationAddress: Sendable, Equatable {
    /// Why a text is not such an address.
    package enum ParseError: Error, Equatable, Sendable {
        /// Neither an absolute path nor a name after `@`.
        case unsupported
        /// Longer than the kernel takes.
        case tooLong
    }

    /// The most bytes of an address: sun_path has 108, of which a path needs one for its end.
    static let maximumBytes = 107

    /// The address as written.
    package let text: String

    package init(parsing text: String) throws(ParseError) {
        let isName = text.utf8.first == UInt8(ascii: "@") && text.utf8.count > 1
        let isPath = text.utf8.first == UInt8(ascii: "/")
        guard isName || isPath, !text.utf8.contains(0) else { throw .unsupported }
        guard text.utf8.count <= Self.maximumBytes else { throw .tooLong }
        self.text = text
    }

    /// The address in the kernel's form, with its length. A name in the abstract namespace begins
    /// with a zero byte, and its length tells where it ends.
    var kernelForm: (address: sockaddr_un, length: socklen_t) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(text.utf8)
        let isName = bytes.first == UInt8(ascii: "@")
        if isName { bytes[0] = 0 } else { bytes.append(0) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        return (address, socklen_t(start + bytes.count))
    }
}
