import CLinux
import HTTPCore

/// The listening TCP sockets in this network namespace, as the kernel lists them (proc_pid_net(5)).
/// No call on one's own socket reveals who else holds an address.
public enum ListeningSockets {
    /// One socket: the endpoint it listens on, and its inode number.
    struct Row: Equatable {
        var endpoint: Endpoint
        var inode: UInt64
    }

    /// The inodes of the sockets with which a listening socket on `endpoint` would share
    /// connections, or from which it would take them; `nil` if they cannot be determined.
    public static func inodes(at endpoint: Endpoint) -> Set<UInt64>? {
        var found: Set<UInt64> = []
        for (path, isNeeded) in [("/proc/self/net/tcp", true), ("/proc/self/net/tcp6", false)] {
            guard let rows = rows(path) else {
                if isNeeded { return nil }
                continue  // a kernel without IPv6
            }
            for row in rows where row.overlaps(endpoint) { found.insert(row.inode) }
        }
        return found
    }

    /// The inode number of a descriptor's socket.
    public static func inode(of descriptor: Int32) -> UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    private static func rows(_ path: String) -> [Row]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var rows: [Row] = []
        while getline(&line, &capacity, file) > 0, let text = line {
            if let row = Row(String(cString: text)) { rows.append(row) }
        }
        return ferror(file) == 0 ? rows : nil
    }
}

extension ListeningSockets.Row {
    /// TCP_LISTEN, as the list writes it.
    private static let listening = "0A"

    /// Parses one line of the list; `nil` for the heading and for sockets that do not listen.
    init?(_ line: String) {
        let columns = line.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard columns.count > 9, columns[3] == Self.listening, let inode = UInt64(columns[9]) else {
            return nil
        }
        let parts = columns[1].split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1], radix: 16),
            let address = Self.address(parts[0])
        else { return nil }
        self.init(endpoint: Endpoint(address: address, port: port), inode: inode)
    }

    /// Parses an address: 32-bit words, each with the network-order bytes read in this machine's
    /// byte order.
    private static func address(_ text: Substring) -> IPAddress? {
        var words: [UInt32] = []
        var rest = text
        while !rest.isEmpty {
            guard let word = UInt32(rest.prefix(8), radix: 16) else { return nil }
            words.append(UInt32(bigEndian: word))
            rest = rest.dropFirst(8)
        }
        switch words.count {
        case 1: return .v4(words[0])
        case 4:
            return .v6(
                UInt64(words[0]) << 32 | UInt64(words[1]),
                UInt64(words[2]) << 32 | UInt64(words[3]))
        default: return nil
        }
    }

    /// Whether a socket for `other` would conflict with this one. A socket on all IPv6 addresses
    /// may serve IPv4 as well, which the list does not show, so it is assumed to. Our own serve
    /// only IPv6.
    func overlaps(_ other: Endpoint) -> Bool {
        guard endpoint.port == other.port else { return false }
        let (mine, its) = (endpoint.address.unmapped, other.address)
        if mine == its { return true }
        switch (mine, its) {
        case (.v4, .v4), (.v6, .v6): return mine.scope == .unspecified || its.scope == .unspecified
        case (.v6, .v4): return mine.scope == .unspecified
        case (.v4, .v6): return false
        }
    }
}
