;; The connected clients: answers their messages, and sends broadcasts to all of them.

(ns shootout.room
  (:require [clojure.data.json :as json]
            [org.httpkit.server :as http]))

(set! *warn-on-reflection* true)

(def ^:private clients (atom #{}))

(defn- encode [message]
  (json/write-str message :escape-unicode false :escape-slash false))

(defn- broadcast
  "Returns the number of clients. A client that is gone is not counted."
  [payload]
  ;; http-kit makes a text frame of each string; the JSON text is written only once.
  (let [text (encode {:type "broadcast" :payload payload})]
    (count (filterv #(http/send! % text) @clients))))

(defn- answer [channel text]
  (let [message (json/read-str text)
        payload (get message "payload")
        reply #(http/send! channel (encode %))]
    (case (get message "type")
      "echo" (reply {:type "echo" :payload payload})
      "broadcast" (reply {:type "broadcastResult" :payload payload :listenerCount (broadcast payload)})
      nil)))

(defn- hear
  "What is no message of ours is ignored."
  [channel text]
  (try
    (answer channel text)
    ;; Invalid JSON, a number that no double can hold, or a binary message. The StackOverflowError is for too deep
    ;; nesting.
    (catch Exception _ nil)
    (catch StackOverflowError _ nil)))

(defn enter
  "Makes the client of this request hear and be heard, until it is gone."
  [request]
  (let [joined (promise)]
    (http/as-channel request
                     {:on-open (fn [channel]
                                 (swap! clients conj channel)
                                 (deliver joined true))
                      ;; The first message may be here before on-open has ended, on another worker.
                      :on-receive (fn [channel text]
                                    @joined
                                    (hear channel text))
                      :on-close (fn [channel _]
                                  (swap! clients disj channel))})))
