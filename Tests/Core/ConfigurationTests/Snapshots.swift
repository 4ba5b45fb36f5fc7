import HTTPCore
import PinfoldConfiguration

/// The minimal configuration: forward listeners, one if no others are given, and the defaults.
func testSnapshot(listeners: [String] = ["proxy"]) -> ConfigurationSnapshot {
    ConfigurationSnapshot(
        workers: .fixed(1),
        listeners: listeners.map {
            ListenerConfiguration(
                name: $0, address: Endpoint(address: .loopbackV4, port: 0), kind: .forward)
        })
}
