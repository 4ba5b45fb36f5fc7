package import Activity

/// Whether packets to somewhere would leave this machine, and by what.
///
/// It says nothing about who answers there: for that, requests are the evidence
/// (`ReachabilityEvent`).
public enum NetworkStatus: Hashable, Sendable {
    /// Nobody has asked yet.
    case unknown
    /// No route, one that refuses, or one by an interface that is down or has no carrier.
    case notReachable
    /// Packets leave by an interface that runs.
    case reachable(InterfaceKind)

    /// AFNetworking's number: −1 for unknown, 0 for not reachable, 1 by a mobile network, and 2 by
    /// Wi-Fi or any other network.
    public var code: Int {
        switch self {
        case .unknown: -1
        case .notReachable: 0
        case .reachable(.cellular): 1
        case .reachable: 2
        }
    }

    /// Whether packets leave.
    public var isReachable: Bool {
        if case .reachable = self { true } else { false }
    }

    /// Of several addresses of a host: the best, for one is enough; unknown without any.
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

    /// What a change to this status says about hosts beyond it (``Activity/ReachabilityState``): a
    /// lost route is a failure at once; anything else makes void what was known.
    package var event: ReachabilityEvent {
        self == .notReachable ? .connectionFailed(.connect) : .reset
    }
}

/// What kind of network an interface is on.
public enum InterfaceKind: String, Hashable, Sendable, CaseIterable {
    /// This machine itself.
    case loopback
    /// A cable, or what stands for one between containers and virtual machines.
    case ethernet
    /// A wireless local network (IEEE 802.11).
    case wifi
    /// A mobile network.
    case cellular
    /// A tunnel, and whatever else there is.
    case other

    /// - Parameters:
    ///   - hardwareType: `ARPHRD_…` of <net/if_arp.h>.
    ///   - deviceType: `DEVTYPE` of its `uevent` below /sys/class/net; nil: it has none.
    ///   - name: where there is none, by systemd's rules for names.
    init(hardwareType: UInt16, deviceType: String?, name: String) {
        switch (hardwareType, deviceType) {
        case (772, _): self = .loopback
        case (_, "wlan"): self = .wifi
        case (_, "wwan"): self = .cellular
        // IEEE 802.11, with or without the head of its radio.
        case (801...803, _): self = .wifi
        // Raw IP is what modems speak.
        case (519, _): self = .cellular
        case (_, _) where name.hasPrefix("wwan") || name.hasPrefix("wwp"): self = .cellular
        case (1, nil) where name.hasPrefix("wl"): self = .wifi
        case (1, _): self = .ethernet
        default: self = .other
        }
    }

    /// `DEVTYPE` of a `uevent` file.
    static func deviceType(uevent text: String) -> String? {
        text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("DEVTYPE=") }
            .map { String($0.dropFirst("DEVTYPE=".count)) }
    }
}
