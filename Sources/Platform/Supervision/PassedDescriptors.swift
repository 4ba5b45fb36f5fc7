import CLinux

/// The descriptors that a service manager opened for this process, each with a name: the sockets of
/// its socket units (systemd.socket(5)), and what was stored (sd_listen_fds_with_names(3)).
package struct PassedDescriptors: Sendable, Equatable {
    /// The first of them; the others follow it.
    static let first: Int32 = 3
    /// The name of those that the manager did not name.
    package static let unnamed = "unknown"

    /// One descriptor.
    package struct Descriptor: Sendable, Equatable {
        package var name: String
        package var number: Int32

        package init(name: String, number: Int32) {
            self.name = name
            self.number = number
        }
    }

    /// In the manager's order.
    package var all: [Descriptor]

    package init(_ all: [Descriptor] = []) { self.all = all }

    /// Those with a name.
    package subscript(name: String) -> [Int32] {
        all.filter { $0.name == name }.map(\.number)
    }

    /// The names, each once, in the manager's order.
    package var names: [String] {
        all.reduce(into: []) { names, one in
            if !names.contains(one.name) { names.append(one.name) }
        }
    }

    /// What is wrong with the variables.
    package enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
        /// LISTEN_FDS is no number of descriptors.
        case number(String)
        /// LISTEN_FDNAMES has another number of names.
        case names(Int, descriptors: Int)
        /// The process has no such descriptor.
        case closed(Int32)

        package var description: String {
            switch self {
            case .number(let text): "LISTEN_FDS is \"\(text)\", not a number of descriptors"
            case .names(let names, let descriptors):
                "LISTEN_FDNAMES has \(names) names for \(descriptors) descriptors"
            case .closed(let number):
                "LISTEN_FDS includes descriptor \(number), which is not open"
            }
        }
    }

    /// The descriptors that the environment lists; none if it lists those of another process, one
    /// that ours was started by.
    ///
    /// - Parameters:
    ///   - pid: this process.
    ///   - variable: the value of a variable, or `nil` if it is not set.
    package init(pid: pid_t, variable: (String) -> String?) throws(ParseError) {
        self.init()
        guard let own = variable("LISTEN_PID"), pid_t(own) == pid,
            let text = variable("LISTEN_FDS")
        else { return }
        guard let count = Int32(text), (0...100_000).contains(count) else { throw .number(text) }
        guard count > 0 else { return }
        var names = [String](repeating: Self.unnamed, count: Int(count))
        if let list = variable("LISTEN_FDNAMES") {
            let listed = list.split(separator: ":", omittingEmptySubsequences: false)
            guard listed.count == names.count else {
                throw .names(listed.count, descriptors: names.count)
            }
            names = listed.map { $0.isEmpty ? Self.unnamed : String($0) }
        }
        all = names.enumerated().map { index, name in
            Descriptor(name: name, number: Self.first + Int32(index))
        }
    }

    /// The descriptors passed to this process, which its children will not inherit; neither do they
    /// the variables. Called before threads are started, and before anything is opened.
    package static func takeFromEnvironment() throws(ParseError) -> PassedDescriptors {
        defer { for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) } }
        let passed = try PassedDescriptors(pid: getpid(), variable: environmentVariable)
        for one in passed.all where fcntl_int(one.number, F_SETFD, FD_CLOEXEC) != 0 {
            throw .closed(one.number)
        }
        return passed
    }
}
