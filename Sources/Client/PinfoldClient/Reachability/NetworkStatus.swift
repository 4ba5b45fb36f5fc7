package import Activity

/// Whether packets to a destination would leave this machine, and through what kind of interface.
///
/// It does not say whether anyone answers there; the evidence for that are requests
/// (`ReachabilityEvent`).
public enum NetworkStatus: Hashable, Sendable {
    /// The status has not been determined yet.
    case unknown
    /// There is no route, or the route rejects packets, or its interface is down or has no carrier.
    case notReachable
    /// Packets leave through a running interface.
    case reachable(InterfaceKind)

    /// AFNetworking's number for the status: −1 for unknown, 0 for not reachable, 1 for a mobile
    /// network, and 2 for Wi-Fi or any other network.
    public var code: Int {
        switch self {
        case .unknown: -1
        case .notReachable: 0
        case .reachable(.cellular): 1
        case .reachable: 2
        }
    }

    /// Whether packets leave this machine.
    public var isReachable: Bool {
        if case .reachable = self { true } else { false }
    }

    /// Returns the best status among several addresses of a host, because one address suffices, or
    /// ``unknown`` if there are none.
    public static func best(of statuses: some Sequence<NetworkStatus>) -> NetworkStatus {
        statuses.max { $0.rank < $1.rank } ?? .unknown
    }

    private var rank: Int {
        switch self {
        case .unknown: 0
        case .notReachable: 1
        case .reachable(.cellular): 2
        case .reachable: 3
        }
    }

    /// What a change to this status means for the hosts beyond it (`ReachabilityState`):
    /// losing the route is an immediate failure; any other change invalidates what was known.
    package var event: ReachabilityEvent {
        self == .notReachable ? .connectionFailed(.connect) : .reset
    }
}

/// The kind of network that an interface is connected to.
public enum InterfaceKind: String, Hashable, Sendable, CaseIterable {
    /// This machine.
    case loopback
    /// A cable, or its equivalent between containers and virtual machines.
    case ethernet
    /// A wireless local network (IEEE 802.11).
    case wifi
    /// A mobile network.
    case cellular
    /// A tunnel, or anything else.
    case other

    /// Classifies an interface.
    ///
    /// - Parameters:
    ///   - hardwareType: `ARPHRD_…` of <net/if_arp.h>.
    ///   - deviceType: `DEVTYPE` in the interface's `uevent` file below /sys/class/net, or `nil` if
    ///     it has none.
    ///   - name: The interface's name, used if there is no device type (systemd's naming scheme).
    init(hardwareType: UInt16, deviceType: String?, name: String) {
        switch (hardwareType, deviceType) {
        case (772, _): self = .loopback
        case (_, "wlan"): self = .wifi
        case (_, "wwan"): self = .cellular
        // IEEE 802.11, with or without radio headers.
        case (801...803, _): self = .wifi
        // Raw IP, which modems use.
        case (519, _): self = .cellular
        case (_, _) where name.hasPrefix("wwan") || name.hasPrefix("wwp"): self = .cellular
        case (1, nil) where name.hasPrefix("wl"): self = .wifi
        case (1, _): self = .ethernet
        default: self = .other
        }
    }

    /// Reads `DEVTYPE` from the text of a `uevent` file.
    static func deviceType(uevent text: String) -> String? {
        text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("DEVTYPE=") }
            .map { String($0.dropFirst("DEVTYPE=".count)) }
    }
}
