# lift_ros in a workspace on the official ROS image:  docker build -t lift_ros .
# Then, for example:  docker run --rm -it --network host -v "$PWD/runs:/runs" lift_ros lift doctor
ARG ROS_DISTRO=kilted
FROM ros:${ROS_DISTRO}-ros-base

# What rosdep does not bring goes into an environment that sees the system's packages; see README.md.
ENV VIRTUAL_ENV=/opt/lift_venv
ENV PATH=${VIRTUAL_ENV}/bin:${PATH}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv libegl1 libgl1 \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv --system-site-packages ${VIRTUAL_ENV}
COPY requirements/workspace.txt /tmp/workspace.txt
RUN pip install --no-cache-dir --requirement /tmp/workspace.txt

WORKDIR /ws
COPY package.xml src/lift_ros/package.xml
RUN apt-get update \
    && rosdep update --rosdistro ${ROS_DISTRO} \
    && rosdep install --from-paths src --ignore-src --yes \
    && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt LICENSE README.md src/lift_ros/
COPY cmake src/lift_ros/cmake
COPY config src/lift_ros/config
COPY launch src/lift_ros/launch
COPY lift_ros src/lift_ros/lift_ros
COPY msg src/lift_ros/msg
RUN . /opt/ros/${ROS_DISTRO}/setup.sh && colcon build --packages-select lift_ros

COPY tools/docker-entrypoint.sh /usr/local/bin/lift-entrypoint
ENTRYPOINT ["/usr/local/bin/lift-entrypoint"]
CMD ["lift", "--help"]
